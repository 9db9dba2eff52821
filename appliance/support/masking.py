"""Masks in place of names, serial numbers and addresses: the same thing gets the same mask in the whole bundle.

Names that are known (of pools, folders, users, the box, disks) are replaced wherever they stand as a word, in one pass,
so that no mask is masked again. Addresses are found by their form. A mask is ``<pool-1>``: no name may hold ``<``.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

# What every box has under that name says nothing of whose it is.
COMMON_HOSTS = {"larder", "localhost", "debian", "localdomain"}
SHORTEST = 2  # letters: a name of one would be masked out of half of every sentence
SHORTEST_INSIDE = 5  # of a serial number, which also stands within other words
SPACES = ("\\040", "\\x20", "%20")  # how a space stands in /proc/mounts, in names of units and in addresses
LOCAL = ("127.", "0.0.0.0", "255.255.255.255")  # noqa: S104  # nothing listens here: these stay as they are
IPV4 = re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w]|\.\d)")
IPV6 = re.compile(r"(?<![\w:.])[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?![\w:])")
MAC = re.compile(r"(?<![\w:-])(?:[0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}(?![\w:-])")
MAIL = re.compile(r"(?<![\w.+/-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,6}")
WWN = re.compile(r"(?i)(?<![0-9a-z])(?:(?:0x|naa\.|eui\.)[0-9a-f]{16,32}|[5-6] [0-9a-f]{6} [0-9a-f]{9})(?![0-9a-z])")
# What stands below a pool or folder: names of files and folders that nobody has listed, and of snapshots.
BELOW = re.compile(r"(<(?:pool|folder)-\d+>)((?:/[^/\s'\",;:@#<>()\[\]|]+|/<[a-z]+-\d+>)+)")
SNAPSHOT = re.compile(r"(<(?:pool|folder|path)-\d+>)([@#])(?!larder-)([^\s'\",;:<>()\[\]|%]+)")
MASK = re.compile(r"<[a-z]+-\d+>")


class Masker:
    """Masks of one bundle. ``known``: by kind (``pool``, ``folder``, ``user``, ``group``, ``host``, ``serial``,
    ``address``) the values to mask; ``addresses``: whether addresses are masked by their form."""

    def __init__(self, known: Mapping[str, Iterable[str]], *, addresses: bool) -> None:
        self.addresses = addresses
        self.serials = "serial" in known
        self.names = bool({"pool", "folder"} & set(known))
        self.masks: dict[str, str] = {}
        self.counts: dict[str, int] = {}
        words, inside, in_paths = set(), set(), set()
        for kind, values in known.items():
            for value in sorted({value.strip() for value in values}, key=lambda one: (one.casefold(), one)):
                if len(value) < SHORTEST or (kind == "host" and value.casefold() in COMMON_HOSTS):
                    continue
                mask = self.mask_of(kind, value)
                for written in {value.replace(" ", space) for space in SPACES} - {value}:
                    self.masks[written.casefold()] = mask
                    words.add(written)
                if kind == "serial" and len(value) >= SHORTEST_INSIDE:
                    inside.add(value)
                elif kind == "folder" and not re.search(r"[^\W\d]", value):
                    in_paths.add(value)  # a year, say, which is no name elsewhere
                else:
                    words.add(value)
        self.pattern = build_pattern(words, inside, in_paths)

    def mask_of(self, kind: str, value: str) -> str:
        """The mask of a value, made at its first sight. Upper and lower case are one name."""
        key = value.casefold()
        if key not in self.masks:
            self.counts[kind] = self.counts.get(kind, 0) + 1
            self.masks[key] = f"<{kind}-{self.counts[kind]}>"
        return self.masks[key]

    def mask(self, text: str) -> str:
        """The text with masks."""
        if self.addresses:
            # Before the names: a name may be a part of an address.
            text = MAIL.sub(self.mask_mail, text)
            text = MAC.sub(lambda found: self.mask_of("mac", found[0].replace("-", ":")), text)
            text = IPV6.sub(lambda found: self.mask_address(found[0]), text)
            text = IPV4.sub(lambda found: self.mask_address(found[0]), text)
        if self.serials:
            text = WWN.sub(lambda found: self.mask_of("serial", digits_of(found[0])), text)
        if self.pattern is not None:
            text = outside_masks(text, self.mask_names)
        if self.names:
            text = BELOW.sub(self.mask_path, text)
            text = SNAPSHOT.sub(lambda found: f"{found[1]}{found[2]}{self.mask_of('snapshot', found[3])}", text)
        return text

    def mask_names(self, text: str) -> str:
        # A few letters are the same to a pattern and not to casefold: what they make is a name of its own.
        return self.pattern.sub(lambda found: self.mask_of("name", found[0]), text) if self.pattern else text

    def mask_mail(self, found: re.Match[str]) -> str:
        """The mask of a mail address; a snapshot of a pool looks like one, and is masked with the names."""
        local, _at, domain = found[0].partition("@")
        is_snapshot = self.masks.get(local.casefold(), "").startswith("<pool-") or domain.startswith("larder-")
        return found[0] if is_snapshot else self.mask_of("mail", found[0])

    def mask_address(self, text: str) -> str:
        """The mask of an address; what is none (a version, a time), and what every box has, stays."""
        if text.startswith(LOCAL):
            return text
        try:
            address = ipaddress.ip_address(text)
        except ValueError:
            return text
        if address.is_loopback or address.is_unspecified:
            return text
        return self.mask_of("address", str(address))

    def mask_path(self, found: re.Match[str]) -> str:
        """The parts of a path below a pool or folder, each masked where it is not yet."""
        parts = found[2].split("/")[1:]
        masked = [part if MASK.fullmatch(part) else self.mask_of("path", part) for part in parts]
        return "/".join([found[1], *masked])


def digits_of(wwn: str) -> str:
    """A world wide name in one form: ``0x50014ee206b8f7a1`` and ``5 0014ee 206b8f7a1`` are the same."""
    return re.sub(r"^(?:0x|naa\.|eui\.)", "", wwn.casefold()).replace(" ", "")


def build_pattern(words: set[str], inside: set[str], in_paths: set[str]) -> re.Pattern[str] | None:
    """One pattern for all known values, of which the longest that fits is taken; None where there is none."""
    parts = [either(inside)] if inside else []
    if words:
        parts.append(rf"(?<![^\W_]){either(words)}(?![^\W_])")
    if in_paths:
        parts.append(rf"(?<=/){either(in_paths)}(?![^\W_])")
    return re.compile("|".join(parts), re.IGNORECASE) if parts else None


def either(values: Iterable[str]) -> str:
    """A pattern for one of many values, letter by letter, so that a thousand names cost no more
    than the longest of them."""
    tree: dict[str, Any] = {}
    for value in values:
        node = tree
        for letter in value.lower():
            node = node.setdefault(letter, {})
        node[""] = {}
    return node_pattern(tree)


def node_pattern(node: dict[str, Any]) -> str:
    """The pattern of what may follow at one place of the tree; the empty letter ends a value."""
    literal = ""
    while len(node) == 1 and "" not in node:
        ((letter, node),) = node.items()
        literal += re.escape(letter)
    branches = [re.escape(letter) + node_pattern(below) for letter, below in sorted(node.items()) if letter]
    if not branches:
        return literal
    return f"{literal}(?:{'|'.join(branches)}){'?' if '' in node else ''}"


def outside_masks(text: str, change: Callable[[str], str]) -> str:
    """The text changed wherever it is not a mask already."""
    pieces, end = [], 0
    for found in MASK.finditer(text):
        pieces += [change(text[end : found.start()]), found[0]]
        end = found.end()
    return "".join([*pieces, change(text[end:])])
