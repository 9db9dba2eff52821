"""Make the support bundle: one zip in memory, which the asker gets as an open file. Nothing of it is on a disk.

Every text goes through the same two steps: secrets are hidden (``appliance/system/redaction.py``), then what was chosen
is masked. Bounds: the files, their bytes, and the seconds after which no further file is begun.
"""

from __future__ import annotations

import os
import pwd
import time
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Literal

import msgspec

from appliance import names
from appliance.errors import LarderError, Reason, Refused, explain_error
from appliance.facts.box import Facts
from appliance.message import Message
from appliance.request import Exchange, Request
from appliance.support.masking import Masker
from appliance.support.sections import MOST_JOURNAL, OWN, SECTIONS
from appliance.system import host_name, time_sync
from appliance.system.redaction import Redactor, known_secrets

MOST_OWN = 250_000  # characters of each file that the pages send along
MOST_GIVEN, LONGEST_GIVEN = 300, 500  # values to mask or hide, and characters of each
MOST_SECONDS = 240.0
FIRST_USER = 1000  # useradd(8): accounts of people
README = "README.txt"
Masked = Literal["names", "serials", "addresses"]
MASKED: dict[Masked, str] = {
    "names": Message("names of this box, of users, groups, pools, folders and files"),
    "serials": Message("serial numbers of disks"),
    "addresses": Message("network and mail addresses"),
}


class BundleFile(msgspec.Struct, frozen=True):
    """One file in it: its name, what it holds, and its size in bytes."""

    name: str
    holds: str
    size: int


class MakeBundle(Request, tag="make-bundle"):
    """The support bundle. ``own``: files that the pages add, of the names in OWN. ``users``, ``hosts`` and ``pools``:
    names that only the pages know, of pools that are gone, say; ``secrets``: values that must be nowhere in it;
    ``masked``: what gets masks, by choice."""

    own: dict[str, str] = {}
    users: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    pools: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    masked: tuple[Masked, ...] = ("names", "serials", "addresses")

    def __post_init__(self) -> None:
        if not set(self.own) <= set(OWN) or any(len(text) > MOST_OWN for text in self.own.values()):
            raise Refused(Reason("bundle-files-unknown", "Those are not files of a support bundle."))
        for values in (self.users, self.hosts, self.pools, self.secrets):
            if len(values) > MOST_GIVEN or any(len(value) > LONGEST_GIVEN for value in values):
                raise Refused(Reason("bundle-values-too-many", "That is too much to hide in a support bundle."))
        for value in (*self.users, *self.hosts, *self.pools):
            names.refuse_invisible_characters(value, "masked")

    def answer(self, exchange: Exchange) -> None:
        """Send each file's name as it is begun, and at the end the zip as an open file."""
        handle = os.memfd_create("larder-support-bundle", os.MFD_CLOEXEC)
        with os.fdopen(handle, "w+b") as file:
            files = self.write(file, exchange)
            file.flush()
            size = file.tell()
            file.seek(0)
            facts = {"size": size, "files": [[one.name, one.holds, one.size] for one in files]}
            exchange.send_file({"facts": facts}, handle)

    def write(self, file: IO[bytes], exchange: Exchange) -> list[BundleFile]:
        """Write the zip into a file; what is in it."""
        import zipfile  # the web and the worker know this request, and only the agent writes the file

        until = time.monotonic() + MOST_SECONDS
        exchange.send({"file": "the facts of this box", "at": 0, "of": len(SECTIONS)})
        facts, problem = read_facts(exchange)
        clean = self.cleaner(facts)
        made: list[BundleFile] = []
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:

            def add(name: str, holds: str, text: str) -> None:
                data = clean(text[: MOST_JOURNAL + 1000]).encode(errors="replace")
                archive.writestr(name, data)
                made.append(BundleFile(name, holds, len(data)))

            for at, section in enumerate(SECTIONS, 1):
                exchange.send({"file": section.name, "at": at, "of": len(SECTIONS)})
                add(section.name, section.holds, read_section(section.read, facts, until))
            for name, text in sorted(self.own.items()):
                add(name, OWN[name], text)
            add(README, "what this bundle is and what is masked in it", self.describe(made, problem))
        return made

    def cleaner(self, facts: Facts) -> Callable[[str], str]:
        """What every text goes through: first secrets, then masks."""
        redactor = Redactor([*known_secrets(), *self.secrets])
        known: dict[str, Iterable[str]] = {}
        if "names" in self.masked:
            known |= {
                "pool": [*self.pools, *pool_names(facts)],
                "folder": [part for name in dataset_names(facts) for part in name.split("/")[1:]],
                "user": [name for name in (*self.users, *people(facts)) if name not in names.SYSTEM_USERS],
                "share": [share.name for share in facts.shares],
                "group": [group.name for group in facts.groups],
                "host": [host_name.read_host_name(), *self.hosts, *(remote.host for remote in facts.remotes)],
            }
        if "serials" in self.masked:
            known["serial"] = [disk.serial for disk in facts.disks if disk.serial]
        if "addresses" in self.masked:
            known["address"] = time_servers()
        masker = Masker(known, addresses="addresses" in self.masked)
        return lambda text: masker.mask(redactor.hide(text))

    def describe(self, made: Iterable[BundleFile], problem: str) -> str:
        masked = [words for kind, words in MASKED.items() if kind in self.masked]
        lines = [
            "Support bundle of Larder, a NAS appliance.",
            "",
            "Passwords, passphrases, keys and tokens are not in it. Where one stood in a text, it says (hidden).",
            f"Masked, the same thing always by the same mask: {', '.join(masked) or 'nothing'}.",
            *([f"Part of the facts could not be read: {problem}"] if problem else []),
            "",
            *(f"{one.name}: {one.holds} ({one.size} bytes)" for one in made),
            "",
        ]
        return "\n".join(lines)


def read_facts(exchange: Exchange) -> tuple[Facts, str]:
    """The facts of the box, or none and why: a bundle is made of a box that does not work, too."""
    try:
        return exchange.read_facts(), ""
    except LarderError as error:
        return Facts(), explain_error(error)


def read_section(read: Callable[[Facts], str], facts: Facts, until: float) -> str:
    """The text of a file, or why there is none."""
    if time.monotonic() > until:
        return "(Left out: making the bundle took too long.)\n"
    try:
        return read(facts)
    except (LarderError, OSError, ValueError) as error:
        return f"(This could not be read: {explain_error(error)})\n"


def pool_names(facts: Facts) -> Iterator[str]:
    yield from (pool.name for pool in facts.pools)
    yield from (name.partition("/")[0] for name in dataset_names(facts))


def dataset_names(facts: Facts) -> Iterator[str]:
    """Of this box, and where copies lie on other computers."""
    yield from (dataset.name for dataset in facts.datasets)
    yield from (remote.root for remote in facts.remotes)


def people(facts: Facts) -> Iterator[str]:
    """Names of users of shares, by which they sign in and as they are called, and of other
    people with an account here."""
    yield from (remote.user for remote in facts.remotes)
    for account in facts.accounts:
        yield account.name
        yield account.display
    for entry in pwd.getpwall():
        if FIRST_USER <= entry.pw_uid < 60_000 and entry.pw_name not in names.SYSTEM_USERS:
            yield entry.pw_name
            yield entry.pw_gecos.partition(",")[0]


def time_servers() -> list[str]:
    try:
        sync = time_sync.read_time_sync()
    except LarderError:
        return []
    return [*sync.servers, *([sync.server] if sync.server else [])] if sync else []
