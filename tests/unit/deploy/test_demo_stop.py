"""``make demo`` can be stopped also where it was started in the background of a script."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
# The real command, over an appliance that only says what is done to it.
DEMO = """
import sys
from pathlib import Path
from types import SimpleNamespace
from deploy.image import __main__ as image, build, states

appliance = SimpleNamespace(
    address="https://localhost:8443", wait_ready=lambda: None, run=lambda *_words, **_more: "CODE", running=lambda: True,
    shut_down=lambda: print("it was shut down", flush=True),
)
image.DEMO = Path(sys.argv[1])
build.build_system_layer = lambda: Path("/layer")
states.boot_machine = lambda *_words, **_more: appliance
sys.argv = ["image", "demo"]
image.main()
"""


@pytest.mark.parametrize("ignored", [True, False])
def test_demo_is_stopped_by_sigterm(tmp_path, ignored):
    demo = subprocess.Popen(
        [sys.executable, "-c", DEMO, str(tmp_path / "demo")],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN if ignored else signal.SIG_DFL),
    )
    try:
        assert demo.stdout is not None
        said = ""
        for line in demo.stdout:
            said += line
            if "Ctrl-C stops it" in line:
                break
        demo.send_signal(signal.SIGTERM)
        said += demo.communicate(timeout=60)[0]
    finally:
        demo.kill()
    assert demo.returncode == 0, said
    assert said.count("it was shut down") == 1
    assert "Traceback" not in said
