"""A server of the test that takes what a webhook posts, outside of the appliance."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.system.mailbox import HOST


@dataclass(frozen=True)
class Post:
    """What was posted: where to, under which headers (their names in small letters), the text."""

    path: str
    headers: dict[str, str]
    text: str


class Hook(ThreadingHTTPServer):
    """``status`` is what it answers; only what it answers with 200 counts as taken."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Request)
        self.status = 200
        self.tries = 0
        self.taken: list[Post] = []

    @property
    def address(self) -> str:
        """As the appliance reaches it: within its own network."""
        return f"http://{HOST}:{self.server_address[1]}/attic?from=larder"

    def titles(self) -> list[str]:
        return [one.headers["title"] for one in self.taken]


class Request(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        hook: Any = self.server
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        hook.tries += 1
        if hook.status == 200:
            hook.taken.append(Post(self.path, {name.lower(): value for name, value in self.headers.items()}, text))
        self.send_response(hook.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_args: object) -> None: ...


@contextmanager
def webhook() -> Iterator[Hook]:
    with Hook() as hook:
        threading.Thread(target=hook.serve_forever, daemon=True).start()
        yield hook
        hook.shutdown()
