"""Settings for unit and web tests: databases in memory, no Redis, no agent."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

_folder = tempfile.mkdtemp(prefix="larder-test-")
atexit.register(shutil.rmtree, _folder, ignore_errors=True)
os.environ.update(
    LARDER_SECRET_KEY="for tests only",
    LARDER_RUN=f"{_folder}/run",
    LARDER_STATE=f"{_folder}/state",
    LARDER_SPOOL=f"{_folder}/spool",
    LARDER_BROKER=f"redis+socket://{_folder}/no-redis.sock",
)
for _name in ("run/inventory", "run/secrets", "state", "spool"):
    Path(_folder, _name).mkdir(parents=True)

from web.settings import *  # noqa: E402, F403

for _database in DATABASES.values():  # noqa: F405
    _database["NAME"] = ":memory:"
    _database["OPTIONS"] = {"transaction_mode": "IMMEDIATE"}
ALLOWED_HOSTS = ["testserver", "localhost"]  # type: ignore[assignment]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
STORAGES = {**STORAGES, "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}}  # noqa: F405
