"""How gunicorn serves the pages: one process, a few threads, on the socket that systemd hands over."""

workers = 1
worker_class = "gthread"
threads = 4
timeout = 120
graceful_timeout = 10
keepalive = 30
worker_tmp_dir = "/dev/shm"  # a heartbeat file; on tmpfs it wears nothing
preload_app = False
accesslog = None
loglevel = "warning"
