"""Compile the catalogues of translations for the pages: ``python -m deploy.catalogues FOLDER``.

polib is loaded only here, at installation: what runs reads the compiled files.
"""

from __future__ import annotations

import sys
from pathlib import Path

import polib


def compile_catalogues(folder: Path) -> None:
    """Write a ``.mo`` beside each ``.po`` below the folder."""
    for path in sorted(folder.glob("*/LC_MESSAGES/*.po")):
        polib.pofile(str(path)).save_as_mofile(str(path.with_suffix(".mo")))


if __name__ == "__main__":
    compile_catalogues(Path(sys.argv[1]))
