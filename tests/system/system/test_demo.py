"""``make demo``, as a person uses it: started, used, stopped with Ctrl-C, started again."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from deploy.image.__main__ import DEMO_PORTS
from deploy.image.build import CHECKOUT
from deploy.image.machine import RUN, Machine
from tests.visitor import Visitor, disk_paths

# Two boots under emulation take more than two minutes.
NAME = "demo-of-the-tests"


@contextmanager
def running() -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The demo in a session of its own, once it has said all it has to say; and what it said."""
    demo = subprocess.Popen(
        ["make", "demo"],
        cwd=CHECKOUT,
        env={**os.environ, "LARDER_DEMO": NAME},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    said = ""
    try:
        assert demo.stdout is not None
        for line in demo.stdout:
            said += line
            if "Ctrl-C stops it" in line:
                break
        assert "Ctrl-C stops it" in said, said
        yield demo, said
    finally:
        if demo.poll() is None:
            os.killpg(demo.pid, signal.SIGKILL)
        demo.wait()


def press_ctrl_c(demo: subprocess.Popen[str]) -> None:
    """What a terminal does: the signal goes to every process of the foreground."""
    os.killpg(demo.pid, signal.SIGINT)
    demo.wait(timeout=180)


def test_the_demo_stops_with_ctrl_c_and_keeps_its_disks_until_it_is_reset(layer):
    reset = ["make", "demo-reset"]
    subprocess.run(reset, cwd=CHECKOUT, env={**os.environ, "LARDER_DEMO": NAME}, check=True)
    with running() as (demo, said):
        assert f"https://localhost:{DEMO_PORTS['https']}" in said
        code = re.search(r"Set-up code:\s+(\S+)", said)
        assert code
        found = Machine.find(NAME)
        visitor = Visitor(found)
        answer = visitor.post(
            "/setup/",
            code=code[1],
            username="admin",
            password="correct horse battery",
            again="correct horse battery",
        )
        assert "/setup/" not in answer.url, answer.words
        visitor.wait_until("/disks/", "WD-WCAZA0000001", timeout=180)
        job = visitor.confirm(visitor.review_pool("tank", disk_paths(found, 1, 2), "mirror-1"))
        assert visitor.ended(job, timeout=300).startswith("Done.")
        press_ctrl_c(demo)
        assert not found.running()
    with running() as (demo, said):
        assert "none, it is set up" in said
        visitor = Visitor(Machine.find(NAME))
        visitor.sign_in()
        visitor.wait_until("/pools/", "tank", timeout=180)
        press_ctrl_c(demo)
    subprocess.run(reset, cwd=CHECKOUT, env={**os.environ, "LARDER_DEMO": NAME}, check=True)
    assert not (RUN / NAME).exists()
