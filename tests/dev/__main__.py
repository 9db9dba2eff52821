"""Larder's pages with recorded boxes, on a developer's own machine: ``make dev``. Never a way to run the product.

No root, no ZFS, no Redis; everything is in a temporary folder that goes when this ends. Nothing is run: every operation
that is confirmed ends refused.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

from django.utils import autoreload

from tests.dev import place

ROOT = Path(__file__).parents[2]


def main(words: list[str] | None = None) -> None:
    """Make the folder, and start the server, again whenever the code has changed."""
    reader = argparse.ArgumentParser(prog="python -m tests.dev", description=__doc__)
    reader.add_argument("--box", default=place.BOXES[0], choices=place.BOXES)
    reader.add_argument("--port", type=int, default=8000)
    options = reader.parse_args(words)
    if refusal := place.refusal():
        sys.exit(refusal)
    if os.environ.get(autoreload.DJANGO_AUTORELOAD_ENV) == "true":
        autoreload.run_with_reloader(serve, options.box, options.port)
        return
    folder = Path(tempfile.mkdtemp(prefix=place.PREFIX))
    os.environ.update({place.NAME: str(folder), "DJANGO_SETTINGS_MODULE": "tests.dev.settings"})
    try:
        place.prepare(folder)
        autoreload.run_with_reloader(serve)  # in another process, which comes here too
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def serve(box: str, port: int) -> None:
    """Bring the databases to this version, fill them the first time, and serve."""
    import django
    from django.conf import settings

    from deploy.catalogues import compile_catalogues

    for folder in settings.LOCALE_PATHS:
        compile_catalogues(ROOT / "web/locale", folder)
    django.setup()
    from django.core.management import call_command

    from tests.dev import inventory, stand_in

    call_command("prepare")
    if not inventory.current():
        inventory.fill(box)
        print(
            f"\nThe recorded box “{box}” is at http://127.0.0.1:{port}/ (user {stand_in.NAME}, password "
            f"{stand_in.PASSWORD}), "
            "every piece of its pages at /components/. Ctrl-C ends it.\n",
            flush=True,
        )
    call_command("runserver", f"127.0.0.1:{port}", use_reloader=False, skip_checks=True)


if __name__ == "__main__":
    main()
