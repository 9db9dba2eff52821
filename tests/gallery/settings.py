"""Django's settings for the gallery: those of a recorded box, without its bar, and quick."""

from __future__ import annotations

from tests.dev.settings import *  # noqa: F403

MIDDLEWARE[MIDDLEWARE.index("tests.dev.bar.Bar")] = "tests.gallery.middleware.Gallery"  # noqa: F405
TEMPLATES[0]["OPTIONS"]["loaders"] = [  # type: ignore[index]  # noqa: F405
    (
        "template_partials.loader.Loader",
        [("django.template.loaders.cached.Loader", ["django.template.loaders.filesystem.Loader"])],
    )
]
LOGGING["root"]["level"] = "ERROR"  # type: ignore[index]  # noqa: F405
LOGGING["loggers"] = {"django.request": {"level": "ERROR"}}  # noqa: F405
