"""Run ``zfs`` and ``zpool`` with ``-j`` and read the JSON that they print, whatever bytes its strings hold.

OpenZFS does not ask whether user properties, mountpoints or the paths of vdevs are UTF-8, and file names need not
be. Its nvlist_print_json_string() (2.3.9) stops at the first bytes that are no character of the locale, the rest
of the JSON is missing, and the exit status stays 0. One such value would hide every pool. So the command is run
once more with a locale in which each byte is a character. glibc has none, so a small one is compiled for that one
call: its ``C`` ends at 127.
"""

from __future__ import annotations

import json
import logging
import tempfile
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from appliance import command
from appliance.errors import Failed
from appliance.formatting import names_text
from appliance.message import Message

log = logging.getLogger(__name__)

# Stands where bytes were not UTF-8. No path, name or setting of Larder's own has it.
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
# glibc takes the conversion from the name of the charset (gconv, in libc6), and the rest from these two files.
LOCALE = "bytes"
CHARMAP = "\n".join(
    (
        "<code_set_name> ISO-8859-1",
        "<mb_cur_min> 1",
        "<mb_cur_max> 1",
        "<escape_char> /",
        "CHARMAP",
        *(f"<U{byte:04X}> /x{byte:02x}" for byte in range(256)),
        "END CHARMAP",
        "",
    )
)
SOURCE = "LC_CTYPE\nEND LC_CTYPE\n"
SECONDS_TO_COMPILE = 20
MOST_NAMED = 10


def read_json(argv: Sequence[str], *, timeout: float, may_be_empty: bool = False) -> dict[str, Any]:
    """The JSON object that a command prints; ``may_be_empty``: an empty one where it prints nothing.

    Bytes that are not UTF-8 come as REPLACEMENT, and the journal names the place once.
    Raises what ``command.run`` raises; Failed with the beginning of what was printed where that is no JSON object.
    """
    what, result = " ".join(argv[:2]), command.run(argv, timeout=timeout)
    if may_be_empty and not result.stdout.strip():
        return {}
    try:
        return parse_object(result.stdout, what)
    except Failed as failed:
        found = read_byte_by_byte(argv, timeout, failed)
    places: list[str] = []
    restored: dict[str, Any] = restore_text(found, places)
    if places:
        warn_once(f"{what}: not UTF-8, so shown with {REPLACEMENT}: {names_text(places, MOST_NAMED, '; ')}")
    return restored


def parse_object(text: str, what: str) -> dict[str, Any]:
    """The JSON object in a text. Raises Failed with its beginning where it is none."""
    try:
        found = json.loads(text)
    except ValueError as error:
        raise Failed(Message("{what} printed something that is not JSON", what=what), text[:200]) from error
    if not isinstance(found, dict):  # not to be taken for a box without pools
        raise Failed(Message("{what} printed something that is not what was asked for", what=what), text[:200])
    return found


def read_byte_by_byte(argv: Sequence[str], timeout: float, failed: Failed) -> dict[str, Any]:
    """The object that the command prints where each byte is a character, U+0000 to U+00FF.

    Raises what ``command.run`` raises; ``failed`` where the locale cannot be compiled.
    """
    with tempfile.TemporaryDirectory(prefix="larder-locale-") as folder:
        try:
            compile_locale(Path(folder))
        except (Failed, OSError) as error:
            log.warning("no locale of single bytes: %s", error)
            raise failed from error
        result = command.run(argv, timeout=timeout, environment=locale_environment(folder))
    return parse_object(result.stdout, " ".join(argv[:2]))


def compile_locale(folder: Path) -> None:
    """Write the locale LOCALE into a folder, which takes some milliseconds. Raises Failed, OSError."""
    charmap, source, made = folder / "charmap", folder / "source", folder / LOCALE
    charmap.write_text(CHARMAP, encoding="ascii")
    source.write_text(SOURCE, encoding="ascii")
    # -c: it misses dates, money and the like, says so by status 1, and is made all the same.
    argv = ["localedef", "-c", "--quiet", "--no-archive", "-f", str(charmap), "-i", str(source), str(made)]
    result = command.run(argv, timeout=SECONDS_TO_COMPILE, accept=(0, 1))
    if not (made / "LC_CTYPE").exists():
        raise command.CommandFailed(result)


def locale_environment(folder: str) -> dict[str, str]:
    """Variables for a command that is to use the locale of a folder; all else stays English."""
    return {"LC_ALL": "", "LANG": "C", "LC_CTYPE": LOCALE, "LOCPATH": folder}


def restore_text(value: Any, places: list[str], at: str = "") -> Any:
    """The same object with its strings as UTF-8; ``places`` gets the path of each that is none."""
    if isinstance(value, str):
        raw = value.encode("latin-1", errors="replace")
        try:
            return raw.decode()
        except UnicodeDecodeError:
            places.append(ascii(at))
            return raw.decode(errors="replace")
    if isinstance(value, list):
        return [restore_text(one, places, at) for one in value]
    if isinstance(value, dict):
        restored: dict[str, Any] = {}
        for key, one in value.items():
            # Two vdevs whose names differ only there stay two.
            name = key.encode("latin-1", errors="replace").decode(errors="backslashreplace")
            restored[name] = restore_text(one, places, f"{at} {name}".lstrip())
        return restored
    return value


@lru_cache(maxsize=100)
def warn_once(text: str) -> None:
    """Write to the journal what would be read again every few seconds."""
    log.warning("%s", text)
