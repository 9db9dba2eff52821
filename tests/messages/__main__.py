"""Bring the catalogues up to date with templates and code: ``make messages``. Says what is left to translate."""

from __future__ import annotations

import polib

from tests.messages import catalogue


def main() -> None:
    catalogue.write_catalogues()
    for language in catalogue.LANGUAGES:
        found = polib.pofile(str(catalogue.path_of(language)))
        words = sum(len(f"{entry.msgid} {entry.msgid_plural}".split()) for entry in found)
        left = sum(not catalogue.is_complete(entry) for entry in found)
        print(f"{language}: {len(found)} messages of {words} words, {left} to be translated")
        print(*(fault for entry in found for fault in catalogue.faults(entry)), sep="\n")


if __name__ == "__main__":
    main()
