"""Serve the recorded boxes to the gallery, on a free port of this machine, until standard input ends.

The clock stands still, so that two pictures of a page are equal.
``longer`` makes every message 40 % longer, for a browser that asks for Dutch.
"""

from __future__ import annotations

import os
import shutil
import socketserver
import sys
import tempfile
import threading
from datetime import UTC, datetime
from pathlib import Path
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

import time_machine

from tests.dev import place

NOW = datetime(2026, 3, 12, 9, 41, tzinfo=UTC)


class Server(socketserver.ThreadingMixIn, WSGIServer):
    daemon_threads = True


class Quiet(WSGIRequestHandler):
    def log_message(self, *_words: object) -> None:
        """Say nothing."""


def main() -> None:
    """Make the folder, serve, and remove the folder."""
    if refusal := place.refusal():
        sys.exit(refusal)
    folder = Path(tempfile.mkdtemp(prefix=place.PREFIX))
    os.environ.update({place.NAME: str(folder), "DJANGO_SETTINGS_MODULE": "tests.gallery.settings"})
    try:
        place.prepare(folder)
        if sys.argv[1:] == ["longer"]:
            from tests.messages.pseudo import longer, write_pseudo_catalogue  # it imports this module

            write_pseudo_catalogue(folder / "locale", longer)
        serve()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def serve() -> None:
    """Print the port, and serve until nobody holds the other end of standard input."""
    import django
    from django.contrib.staticfiles.handlers import StaticFilesHandler
    from django.core.management import call_command

    django.setup()
    call_command("prepare")
    from web.wsgi import application

    server = Server(("127.0.0.1", 0), Quiet)
    server.set_app(StaticFilesHandler(application))
    with time_machine.travel(NOW, tick=False):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        print(server.server_port, flush=True)
        sys.stdin.read()
        server.shutdown()


if __name__ == "__main__":
    main()
