"""Serve the pages: ``python -m web``, on the socket that systemd hands over, or on ``--bind
PATH`` where there is no systemd.

One process with four threads. With a socket of systemd's it ends after ten minutes without a request, and the next
visitor starts it again: a box that nobody looks at keeps its memory for files.
"""

from __future__ import annotations

import argparse
import gc
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from waitress.channel import HTTPChannel
from waitress.server import create_server

from appliance.system import memory

THREADS = 4
IDLE_SECONDS = 600
SECONDS_BETWEEN_LOOKS = 10.0
SYSTEMD_SOCKET = 3  # sd_listen_fds(3): the first descriptor handed over
LARGEST_REQUEST = 2 * 2**20  # nginx refuses more (deploy/nginx/larder.conf)
# A download waits for its reader beyond this, instead of growing in memory or on disk.
UNSENT_BYTES = 2**19

Application = Callable[[dict[str, Any], Any], Iterable[bytes]]


class LastRequest:
    """The application, with the moment of its last request."""

    def __init__(self, application: Application, clock: Callable[[], float] = time.monotonic) -> None:
        self.application, self.clock = application, clock
        self.last = clock()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        self.last = self.clock()
        return self.application(environ, start_response)

    def idle_for(self, seconds: float) -> bool:
        return self.clock() - self.last >= seconds


def serve(application: Application, listening: socket.socket, *, idle_seconds: float | None) -> None:
    """Answer requests until SIGTERM, or until nobody has asked for ``idle_seconds``; None is for ever.

    Connections are taken in this thread alone, so none is lost between the last look and the end: those that come later
    wait in the socket, which systemd keeps, for the next process.
    """
    activity = LastRequest(application)
    channels: dict[int, Any] = {}
    server = create_server(
        activity,
        map=channels,
        sockets=[listening],
        threads=THREADS,
        ident="",
        clear_untrusted_proxy_headers=False,  # only nginx can open the socket
        max_request_body_size=LARGEST_REQUEST,
        outbuf_high_watermark=UNSENT_BYTES,
        channel_timeout=130,
    )

    def over() -> bool:
        connected = any(isinstance(channel, HTTPChannel) for channel in channels.values())
        return idle_seconds is not None and not connected and activity.idle_for(idle_seconds)

    try:
        # Whoever made systemd start it is already waiting: look first.
        tidied = activity.last
        while True:
            server.asyncore.loop(timeout=SECONDS_BETWEEN_LOOKS, use_poll=True, map=channels, count=1)
            if over():
                break
            if activity.last != tidied and activity.idle_for(SECONDS_BETWEEN_LOOKS):
                tidied = activity.last
                memory.give_back()
    finally:
        server.task_dispatcher.shutdown(timeout=10)


def stop(_signal: int, _frame: object) -> None:
    raise SystemExit(0)


def main() -> int:
    """The exit status: 0 after SIGTERM and after idling."""
    parser = argparse.ArgumentParser(prog="python -m web", description=__doc__)
    parser.add_argument("--bind", type=Path, help="a socket to make, where systemd hands none over")
    asked = parser.parse_args()
    if asked.bind:
        asked.bind.unlink(missing_ok=True)
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(str(asked.bind))
        listening.listen(128)
    elif os.environ.get("LISTEN_FDS") == "1":
        listening = socket.socket(fileno=SYSTEMD_SOCKET)
    else:
        print("larder: systemd has handed over no socket; give one with --bind", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, stop)
    from web.wsgi import application

    # What is loaded stays: the collector of garbage need not walk it again and again.
    gc.freeze()
    serve(application, listening, idle_seconds=None if asked.bind else IDLE_SECONDS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
