"""Catalogues are compiled at installation: what is translated, and nothing else."""

from __future__ import annotations

import gettext

from deploy.catalogues import compile_catalogues

CATALOGUE = """msgid ""
msgstr ""
"Content-Type: text/plain; charset=utf-8\\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\\n"

msgid "Pool"
msgstr "Opslag"

msgid "Disk"
msgstr ""

#, fuzzy
msgid "Folder"
msgstr "Map?"

msgid "{count} disk"
msgid_plural "{count} disks"
msgstr[0] "{count} schijf"
msgstr[1] "{count} schijven"
"""


def test_catalogue_is_compiled_beside_its_source(tmp_path):
    folder = tmp_path / "nl/LC_MESSAGES"
    folder.mkdir(parents=True)
    (folder / "django.po").write_text(CATALOGUE)
    compile_catalogues(tmp_path)
    with (folder / "django.mo").open("rb") as file:
        found = gettext.GNUTranslations(file)
    assert [found.gettext(message) for message in ("Pool", "Disk", "Folder")] == ["Opslag", "Disk", "Folder"]
    assert found.ngettext("{count} disk", "{count} disks", 2) == "{count} schijven"
    compile_catalogues(tmp_path, tmp_path / "elsewhere")
    assert (tmp_path / "elsewhere/nl/LC_MESSAGES/django.mo").read_bytes() == (folder / "django.mo").read_bytes()
