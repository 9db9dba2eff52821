"""How gunicorn serves the pages: one process, a few threads, on the socket that systemd hands over."""

import gc

workers = 1
worker_class = "gthread"
threads = 4
timeout = 120
graceful_timeout = 10
keepalive = 30
worker_tmp_dir = "/dev/shm"  # a heartbeat file; on tmpfs it wears nothing
# The process that watches and the one that serves share the memory of what was loaded; so that it stays shared, the
# collector of garbage never walks it.
preload_app = True


def when_ready(_server: object) -> None:
    gc.freeze()


accesslog = None
loglevel = "warning"
