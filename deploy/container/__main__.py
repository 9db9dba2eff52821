"""Build the container image, run docker-compose.yml on this machine, test whether it serves, and stop everything.

``make test-container``. Needs root for the engine, and a Debian mirror for the build; where no engine runs, one is
started for the time of the test, with its own folder under the cache. It works without a ZFS module too: then the pages
have to say that it is missing.
"""

from __future__ import annotations

import contextlib
import http.cookiejar
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

from appliance.zfs import status
from deploy.image import build
from deploy.image.build import CACHE, CHECKOUT, say

NEED = CHECKOUT / "deploy/image/need"
PROJECT = "larder-test"
IMAGE = "larder-test"
DOCKERFILE = "deploy/container/Dockerfile"
# Docker creates missing folders of the host when it mounts them; these are removed again.
HANDED_IN = (Path("/etc/zfs"), Path("/run/udev"), Path("/dev/disk"))
PASSWORD = "seven green bicycles"

# Runs in a container: what a process of that user gets from the agent.
ASK = """
import json, socket
with socket.socket(socket.AF_UNIX) as line:
    line.connect("/run/larder/agent.sock")
    line.sendall(b'{"verb":"follow","job":"00000000-0000-4000-8000-000000000000"}\\n')
    try:
        print(line.makefile().readline() or "silence")
    except ConnectionResetError:
        print("silence")
"""


class TestFailed(SystemExit):
    """A check failed; the text says which."""


def expect(found: bool, what: str) -> None:
    if not found:
        raise TestFailed(f"larder: {what}")
    say(f"ok: {what}")


def wait_for(what: str, done: Callable[[], bool], *, timeout: float) -> None:
    until = time.monotonic() + timeout
    while not done():
        if time.monotonic() > until:
            raise TestFailed(f"larder: {what}: not within {timeout:.0f} s")
        time.sleep(0.5)


def run(*argv: str, env: dict[str, str], cwd: Path | None = None, quiet: bool = False) -> str:
    """Run a Docker command and return its output. A failure ends the test with its output, unless ``quiet``."""
    done = subprocess.run(argv, env=env, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode and not quiet:
        tail = (done.stdout + done.stderr).splitlines()[-40:]
        raise TestFailed("\n".join([*tail, f"larder: {' '.join(argv)[:200]} ended with status {done.returncode}"]))
    return done.stdout


def succeeds(*argv: str, env: dict[str, str]) -> bool:
    return shutil.which(argv[0]) is not None and not subprocess.run(argv, env=env, capture_output=True).returncode


@contextlib.contextmanager
def docker_engine() -> Iterator[dict[str, str]]:
    """An environment in which ``docker`` reaches an engine: the running one, or a separate one."""
    env = dict(os.environ)
    if succeeds("docker", "info", env=env):
        yield env
        return
    if os.geteuid():
        raise TestFailed("larder: no Docker engine runs that this user may use, and starting one needs root")
    subprocess.run([str(NEED), "dockerd=docker.io"], check=True)
    subprocess.run([str(NEED), "docker=docker-cli"], check=True)
    with tempfile.TemporaryDirectory(prefix="larder-docker-") as place:
        env["DOCKER_HOST"] = f"unix://{place}/docker.sock"
        argv = ["dockerd", "--iptables=false", "--bridge=none", "--data-root", str(CACHE / "docker")]
        argv += ["--exec-root", f"{place}/exec", "--pidfile", f"{place}/pid", "-H", env["DOCKER_HOST"]]
        with (CACHE / "docker.log").open("wb") as log:
            # Its own session, so that Ctrl-C reaches only this program, which then cleans up.
            daemon = subprocess.Popen(argv, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)
        try:
            wait_for("the Docker engine to start", lambda: succeeds("docker", "info", env=env), timeout=60)
            say("No Docker engine ran, so one runs for the time of this test.")
            yield env
            # Remove layers of earlier checkouts, and keep those of this one.
            run("docker", "image", "prune", "-f", env=env)
        finally:
            daemon.send_signal(signal.SIGTERM)
            daemon.wait(60)
            # The engine leaves its network namespace mounted.
            for mount in Path("/proc/self/mounts").read_text().splitlines():
                if (point := mount.split()[1]).startswith(f"{place}/"):
                    subprocess.run(["umount", point], check=True)


def compose_command(env: dict[str, str]) -> list[str]:
    for _ in range(2):
        for argv in (["docker", "compose"], ["docker-compose"]):
            if succeeds(*argv, "version", env=env):
                return argv
        subprocess.run([str(NEED), "docker-compose"], check=True)
    raise TestFailed("larder: neither docker compose nor docker-compose works here")


def base_image(env: dict[str, str]) -> None:
    """Build Debian 13 as ``larder-base`` from packages, instead of from a registry of images."""
    if succeeds("docker", "image", "inspect", "larder-base", env=env):
        return
    say("Making the base image.")
    subprocess.run(
        [str(NEED), "mmdebstrap", "/usr/share/keyrings/debian-archive-keyring.gpg=debian-archive-keyring"], check=True
    )
    argv = ["mmdebstrap", "--quiet", "--variant=minbase", "--components=main,contrib", build.SUITE, "-"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as made:
        subprocess.run(["docker", "import", "-", "larder-base"], stdin=made.stdout, env=env, check=True)
    if made.returncode:
        run("docker", "image", "rm", "larder-base", env=env)
        raise TestFailed("larder: mmdebstrap could not make the base image")


def copied_paths() -> set[str]:
    """Paths of this checkout that the Dockerfile copies, without the wheels, whose name is a pattern."""
    lines = [line.split() for line in (CHECKOUT / DOCKERFILE).read_text().splitlines() if line.startswith("COPY ")]
    return {name for words in lines for name in words[1:-1] if not set("[*?") & set(name)}


def fill_context(context: Path) -> None:
    """Copy to the context what the build and Docker's other commands read."""
    for name in sorted(copied_paths() | {DOCKERFILE, "docker-compose.yml"}):
        source, target = CHECKOUT / name, context / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
        else:
            shutil.copy(source, target)


def build_image(context: Path, env: dict[str, str]) -> None:
    """Build the image of this checkout, with downloaded Python packages."""
    fill_context(context)
    shutil.copytree(build.fetch_wheels(), context / "build/wheels", ignore=shutil.ignore_patterns("log", "done"))
    say("Building the image.")
    run("docker", "build", "--network", "host", "-t", IMAGE, "-f", DOCKERFILE, ".", env=env, cwd=context)


@contextlib.contextmanager
def shared_folder(place: Path) -> Iterator[Path]:
    """A folder with shared mount propagation, as every folder has under systemd."""
    folder = place / "pools"
    folder.mkdir()
    subprocess.run(["mount", "--bind", str(folder), str(folder)], check=True)
    try:
        subprocess.run(["mount", "--make-rshared", str(folder)], check=True)
        yield folder
    finally:
        subprocess.run(["umount", "--recursive", str(folder)], check=True)


@contextlib.contextmanager
def provide_folders() -> Iterator[None]:
    made = [folder for folder in HANDED_IN if not folder.exists()]
    try:
        yield
    finally:
        for folder in made:
            with contextlib.suppress(OSError):
                folder.rmdir()


class Browser:
    """A client that follows redirects, keeps cookies and sends forms; accepts the self-signed certificate."""

    def __init__(self, address: str) -> None:
        self.address = address
        trust = ssl.create_default_context()
        trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
        self.opener = urllib.request.build_opener(
            urllib.request.HTTPSHandler(context=trust), urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        )
        self.at = ""

    def get(self, path: str, form: dict[str, str] | None = None) -> str:
        data = urllib.parse.urlencode(form).encode() if form else None
        request = urllib.request.Request(self.address + path, data, {"Referer": self.address + path})
        with self.opener.open(request, timeout=60) as answer:
            self.at = urllib.parse.urlsplit(answer.url).path
            return str(answer.read().decode())

    def serves(self) -> bool:
        try:
            return self.get("/ready/") == "ready\n"
        except (OSError, urllib.error.URLError):
            return False


def check_containers(compose: Callable[..., str], browser: Browser, pools: Path, env: dict[str, str]) -> None:
    """Check the running containers."""
    wait_for("the first page over HTTPS", browser.serves, timeout=60)
    page = browser.get("/")
    expect(browser.at == "/setup/" and "Set-up code" in page, "the set-up page is served over HTTPS")
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
    code = compose("exec", "-T", "web", "cat", "/run/larder/inventory/setup-code").strip()
    form = {"code": code, "username": "admin", "password": PASSWORD, "again": PASSWORD}
    browser.get("/setup/", form | {"csrfmiddlewaretoken": token.group(1) if token else ""})
    expect(browser.at == "/", "the code makes an administrator")

    def first_reading() -> bool:
        page = browser.get("/")
        return ("ZFS module is not loaded" in page) != status.is_module_loaded() and "worker is not running" not in page

    wait_for("the worker's first reading", first_reading, timeout=60)
    expect(
        True, f"the first page {'knows of the' if status.is_module_loaded() else 'says that there is no'} ZFS module"
    )
    page = browser.get("/")
    for trouble in ("agent cannot be reached", "queue (Redis) is not running", "could not read"):
        expect(trouble not in page, f"the first page does not say: {trouble}")

    known = json.loads(compose("exec", "-T", "worker", "/opt/larder/venv/bin/python", "-c", ASK))
    expect(known["outcome"]["state"] == "unknown", "the agent answers the worker")
    stranger = compose("exec", "-T", "-u", "4321:larder", "worker", "/opt/larder/venv/bin/python", "-c", ASK)
    expect(stranger.strip() == "silence", "the agent does not answer another user of the same group")
    for service in ("redis", "web", "worker", "front"):
        seen = compose("exec", "-T", service, "grep", "-E", "^(Uid|CapEff|CapBnd|NoNewPrivs):", "/proc/1/status")
        values = dict(line.split(":", 1) for line in seen.splitlines())
        expect(
            "0" not in values["Uid"].split()
            and not int(values["CapEff"], 16)
            and not int(values["CapBnd"], 16)
            and values["NoNewPrivs"].strip() == "1",
            f"{service} is not root and has no capabilities",
        )
        tried = compose("exec", "-T", service, "sh", "-c", "touch /opt/larder/app/x 2>/dev/null || echo no", quiet=True)
        expect(tried.strip() == "no", f"{service} cannot change its own code")
    links = compose("exec", "-T", "web", "ls", "/sys/class/net").split()
    expect(links == ["lo"], "web has no network")
    expect("zfs" not in compose("exec", "-T", "web", "ls", "/dev").split(), "web has no /dev/zfs")

    inside = pools / "tank"
    compose("exec", "-T", "agent", "sh", "-ec", f"mkdir {inside}; mount -t tmpfs none {inside}; echo kept > {inside}/a")
    expect((inside / "a").read_text() == "kept\n", "what the agent mounts reaches the host")
    expect(compose("exec", "-T", "worker", "cat", f"{inside}/a") == "kept\n", "and the worker")
    compose("exec", "-T", "agent", "umount", str(inside))

    told = compose("logs", "--no-color")
    expect("Traceback" not in told and "Read-only file system" not in told, "no container complains")
    names = compose("ps", "-q").split()
    states = json.loads(run("docker", "inspect", *names, env=env))
    expect(
        len(states) == 5 and all(one["State"]["Running"] and not one["RestartCount"] for one in states),
        "all five containers run and none was restarted",
    )


def test_containers() -> None:
    CACHE.mkdir(parents=True, exist_ok=True)
    with docker_engine() as env, tempfile.TemporaryDirectory(prefix="larder-container-") as place, provide_folders():
        context = Path(place) / "context"
        context.mkdir()
        base_image(env)
        build_image(context, env)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        with shared_folder(Path(place)) as pools:
            env |= {"LARDER_IMAGE": IMAGE, "LARDER_PORT": str(port), "LARDER_POOLS": str(pools)}
            if not Path("/dev/zfs").exists():
                env["LARDER_ZFS_DEVICE"] = "/dev/null"
            start = [*compose_command(env), "-p", PROJECT]

            def compose(*words: str, quiet: bool = False) -> str:
                return run(*start, *words, env=env, cwd=context, quiet=quiet)

            try:
                say("Starting the containers.")
                compose("up", "-d", "--no-build")
                check_containers(compose, Browser(f"https://127.0.0.1:{port}"), pools, env)
            except BaseException:
                print(compose("logs", "--no-color", quiet=True)[-8000:], file=sys.stderr)
                raise
            finally:
                say("Stopping the containers.")
                compose("down", "-v", "--timeout", "10")
                left = run("docker", "ps", "-aq", "--filter", f"label=com.docker.compose.project={PROJECT}", env=env)
                expect(not left.strip(), "no container is left")


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("larder: stopped"))
    test_containers()
