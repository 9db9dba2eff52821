"""Kill things at an exact moment: inside the appliance, the instant a line stands in a job's journal."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from deploy.image.machine import Machine, wait_for

# Watches the agent's journals without pause; it says "now" and kills its victim as soon as the line is there.
WATCHER = """
import glob, json, os, signal, subprocess, sys, time
entry, step, victim = sys.argv[1:4]
folder = "/var/lib/larder-agent/journal"
known = set(glob.glob(folder + "/*"))

def agents():
    # The processes of requests: those whose parent is the agent's server.
    server = subprocess.run(["systemctl", "show", "-P", "MainPID", "larder-agent"], capture_output=True).stdout.strip()
    for pid in os.listdir("/proc"):
        if pid.isdigit():
            try:
                if open(f"/proc/{pid}/stat", "rb").read().rpartition(b")")[2].split()[1] == server:
                    yield int(pid)
            except OSError:
                pass

print("watching", flush=True)
pids = {}  # by journal: a job before the one that is meant has had an agent of its own
parent = os.getppid()  # another one: whoever waited for this has gone, and the next test's agent is none of its business
until = time.monotonic() + 450  # as long as the pages are waited for (PATIENCE in deploy/image/machine.py)
while time.monotonic() < until and os.getppid() == parent:
    for path in set(glob.glob(folder + "/*")) - known:
        if victim == "agent" and path not in pids:
            pids[path] = list(agents())
        lines = open(path).read().splitlines()
        if any(f'"entry": "{entry}"' in line and f'"step": "{step}"' in line for line in lines):
            for pid in pids[path] if victim == "agent" else ([int(victim)] if victim.isdigit() else []):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            print("now", flush=True)
            sys.exit()
    time.sleep(0.002)
sys.exit("the line never came")
"""

# Waits for the next job of the agent, and says so when this part of the usual duration of one of its steps has passed:
# of the one at this place between the first (0) and the last (1), or below 0 of reading the facts before them. Usual is
# the median of what that step of such jobs has taken on this box, else of all steps, else half a second.
WITHIN = """
import datetime, glob, json, os, statistics, sys, time
part, place, folder = float(sys.argv[1]), float(sys.argv[2]), "/var/lib/larder-agent/journal"

def entries(path):
    for line in open(path).read().splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue  # being written
        if entry["entry"] != "note":
            yield entry

def moment(entry):
    return datetime.datetime.fromisoformat(entry["at"]).timestamp()

def step_of(entry):
    return entry["step"] if entry["entry"] == "step begun" else "" if entry["entry"] == "began" and not entry["steps"] else None

def chosen(lines):
    if lines and lines[-1]["entry"] == "ended":
        return lines[-1]
    if place < 0:
        return next(iter(lines), None)
    steps = next((line["steps"] for line in lines if line["entry"] == "began" and line["steps"]), [])
    return next((line for line in lines if steps and line.get("step") == steps[int(place * len(steps))]), None)

known, taken = set(glob.glob(folder + "/*")), {}
for path in known:
    lines = [*entries(path)]
    for line, after in zip(lines, lines[1:]):
        if step_of(line) is not None:
            taken.setdefault((lines[0]["operation"]["kind"], step_of(line)), []).append(moment(after) - moment(line))
usual = {step: statistics.median(seconds) for step, seconds in taken.items()}
print("watching", flush=True)
parent = os.getppid()
while os.getppid() == parent:
    for path in set(glob.glob(folder + "/*")) - known:
        lines = [*entries(path)]
        if line := chosen(lines):
            kind, step = lines[0]["operation"]["kind"], step_of(line)
            seconds = part * (usual.get((kind, step)) or (statistics.median(usual.values()) if usual else 0.5))
            time.sleep(max(0, moment(line) + seconds - time.time()))
            print(json.dumps([os.path.basename(path).removesuffix(".jsonl"), kind, {"": "its reading of facts", None: "its end"}.get(step, step), seconds]), flush=True)
            sys.exit()
    time.sleep(0.01)
"""
# What the process of a job has written into its journal: whoever settles a job begins with a line that is empty, or
# that ends a half-written one. The clocks of an emulated box drift by seconds, so the times of the lines do not tell.
BEFORE_THE_END_OF_ITS_PROCESS = """
import json, sys
for line in open(f"/var/lib/larder-agent/journal/{sys.argv[1]}.jsonl", "rb").read().splitlines():
    try:
        print(json.dumps(json.loads(line)))
    except ValueError:
        break
"""


@contextmanager
def process_inside(appliance: Machine, code: str, *words: str) -> Iterator[subprocess.Popen[str]]:
    """While the body runs, so does this Python code inside, which has begun to watch."""
    appliance.put("/tmp/watcher.py", code)
    argv = [*appliance.ssh_argv(), shlex.join(["python3", "/tmp/watcher.py", *words])]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline().strip() == "watching"
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


@contextmanager
def watching(appliance: Machine, *, entry: str, step: str, victim: str) -> Iterator[subprocess.Popen[str]]:
    """While the body runs, wait inside for the journal's line. ``victim``: agent, worker, or nobody."""
    if victim == "worker":
        victim = appliance.run("systemctl", "show", "-P", "MainPID", "larder-worker").strip()
    with process_inside(appliance, WATCHER, entry, step, victim) as process:
        yield process


def struck(process: subprocess.Popen[str]) -> None:
    """Return when the watcher has seen its line."""
    assert process.stdout is not None
    said = process.stdout.readline().strip()
    assert said == "now", said or (process.stderr.read() if process.stderr else "")


@contextmanager
def stopped(appliance: Machine, *units: str) -> Iterator[None]:
    """While the body runs, these services do not."""
    appliance.run("systemctl", "stop", *units)
    try:
        yield
    finally:
        appliance.run("systemctl", "start", *reversed(units))


def no_lock_left(appliance: Machine) -> None:
    """Every lock of a job is free."""
    code = "from appliance.system import locks; print(locks.any_held())"
    wait_for(
        "free locks",
        lambda: appliance.run("/opt/larder/venv/bin/python", "-I", "-c", code).strip() == "False",
        timeout=30,
    )
