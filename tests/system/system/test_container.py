"""The third way to run Larder: ``make test-container`` builds the image, starts everything and looks."""

from __future__ import annotations

import subprocess
import sys

from deploy.image.build import CHECKOUT


def test_containers_are_built_serve_and_end():
    done = subprocess.run(
        [sys.executable, "-m", "deploy.container"], cwd=CHECKOUT, capture_output=True, text=True, timeout=3600
    )
    assert done.returncode == 0, done.stderr[-4000:]
