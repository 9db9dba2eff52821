"""Compile the catalogues of translations for the pages: ``python -m deploy.catalogues FOLDER``.

polib is loaded only here, at installation: what runs reads the compiled files.
"""

from __future__ import annotations

import sys
from pathlib import Path

import polib


def compile_catalogues(folder: Path, into: Path | None = None) -> None:
    """Write a ``.mo`` beside each ``.po`` below the folder, or at the same place below another one."""
    for path in sorted(folder.glob("*/LC_MESSAGES/*.po")):
        compiled = (into or folder) / path.relative_to(folder).with_suffix(".mo")
        compiled.parent.mkdir(parents=True, exist_ok=True)
        polib.pofile(str(path)).save_as_mofile(str(compiled))


if __name__ == "__main__":
    compile_catalogues(Path(sys.argv[1]))
