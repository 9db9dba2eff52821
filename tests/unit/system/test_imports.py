"""What the web process and the worker must not load at their start: each costs megabytes for as long as they run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
NEITHER = (
    "redis",  # 9 MiB; workers/redis_transport.py is all that is needed
    "jinja2",  # the agent renders configuration files
    "allauth.mfa",  # 12 MiB with what it loads
    "django.contrib.admin",
    "django.contrib.postgres",
    "django.test",
    "unittest",
    "pydoc",
    "doctest",
    "xml.sax",
    "hypothesis",
    "pytest",
    "tests",
)
START = {
    # Celery costs 17 MiB (web/jobs/queue.py); smtplib and urllib.request are the worker's, which sends mail.
    "web": (
        "import web.__main__, web.wsgi",
        (
            "workers",
            "celery",
            "kombu",
            "billiard",
            "amqp",
            "click",
            "smtplib",
            "urllib.request",
            "multiprocessing.pool",
        ),
    ),
    # All views and forms, which Celery's check of Django would load (CELERY_SKIP_CHECKS in its unit),
    # and Celery's command line.
    "worker": (
        "from workers.__main__ import make_worker; make_worker().app.loader.import_default_modules()",
        (
            "web.urls",
            "web.pools.views",
            "django.contrib.auth.forms",
            "allauth.account.views",
            "waitress",
            "celery.bin",
            "celery.beat",
            "celery.events.snapshot",
            "kombu.transport.redis",
            "prompt_toolkit",
            "multiprocessing.pool",
        ),
    ),
}


@pytest.mark.parametrize("process", START)
def test_a_process_loads_nothing_heavy_at_its_start(process):
    code, forbidden = START[process]
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "web.settings_test", "CELERY_SKIP_CHECKS": "1"}
    said = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", f"{code}\nimport sys; print('\\n'.join(sys.modules))"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert {"django.db.models", "appliance.operation"} <= set(said)
    heavy = {name for name in said for bad in (*NEITHER, *forbidden) if name == bad or name.startswith(f"{bad}.")}
    assert heavy == set()
