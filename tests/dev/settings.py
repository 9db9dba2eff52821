"""Django's settings for recorded boxes: those of the product, in a temporary folder and with DEBUG on."""

from __future__ import annotations

import os
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from tests.dev import place

_folder = Path(os.environ.get(place.NAME, "/"))
if _refusal := place.refusal(_folder):
    raise ImproperlyConfigured(_refusal)
os.environ.update(place.environment(_folder))

from appliance.system import paths  # noqa: E402

if _folder / "run" != paths.RUN:
    raise ImproperlyConfigured(
        "appliance.system.paths was imported too early: it would lead out of the temporary folder."
    )

from web.settings import *  # noqa: E402, F403

LOCALE_PATHS = [_folder / "locale"]
BOX_NAME = "recorded"
ALLOWED_HOSTS = ["localhost", "127.0.0.1"]  # type: ignore[assignment]
INSTALLED_APPS = [*INSTALLED_APPS, "tests.dev"]  # noqa: F405
MIDDLEWARE = place.with_bar(MIDDLEWARE)  # noqa: F405
# Without the cache of templates, so that a change is seen at the next look.
_plain = ["django.template.loaders.filesystem.Loader"]
TEMPLATES[0]["OPTIONS"]["loaders"] = [("template_partials.loader.Loader", _plain)]  # type: ignore[index]  # noqa: F405
STATICFILES_DIRS = [*STATICFILES_DIRS, Path(__file__).parent / "static"]  # noqa: F405
STORAGES = {**STORAGES, "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}}  # noqa: F405
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
# Plain HTTP to the developer's own machine.
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = False
