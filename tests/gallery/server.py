"""Start the server of recorded boxes, and end it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def serving(root: Path, *options: str) -> Iterator[str]:
    """The address of a server of the code in ``root``; it ends when its standard input does."""
    command = [sys.executable, "-m", "tests.gallery.serve", *options]
    with subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin
        assert server.stdout
        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}"
        finally:
            server.stdin.close()
