"""Translate a manual change into folders' settings, where settings exist for all of it.

An edited file is read back into the settings of the folders that it names, and the file is then rendered from
those: only where that says the same as the edited file, line for line but for comments and spacing, is the
edit one that can be adopted. So nothing that somebody wrote is ever dropped in silence, and no second list of
what Larder knows is kept here.
"""

from __future__ import annotations

import configparser
import re
from collections.abc import Callable, Iterable, Mapping

from msgspec.structs import replace

from appliance.errors import Failed, Reason, Refused, explain_error
from appliance.facts.box import Facts
from appliance.message import Message, join_messages
from appliance.shares import afp, nfs, smb
from appliance.shares.set_share import SetShare
from appliance.shares.settings import NOBODY, Afp, Nfs, Part, Protocol, ShareSetting, Smb, setting_of, wanted_shares
from appliance.system import accounts

Meaning = dict[str, dict[str, str]]  # a share's name (NFS: its path) to its settings
MIB = 2**20
MOST_REASONS = 20
YES, NO = {"yes", "true", "on", "1"}, {"no", "false", "off", "0"}
# smb.conf(5): other names of what Larder writes, and those that say the opposite.
SAME = {"browsable": "browseable", "public": "guest ok", "casesignames": "case sensitive"}
OPPOSITE = {"writable": "read only", "writeable": "read only", "write ok": "read only"}
EXPORT = re.compile(r'\s*(?:"(?P<quoted>/[^"]*)"|(?P<plain>/\S*))\s+(?P<clients>\S.*)')
CLIENT = re.compile(r"(?P<host>[^\s()]+)\((?P<options>[^()\s]*)\)")


def parse_changes(key: str, text: str, facts: Facts) -> tuple[tuple[SetShare, ...], tuple[str, ...]]:
    """What adopting the text of that file would set, and why it cannot be adopted; the first means
    nothing beside the second."""
    kinds: dict[str, tuple[Protocol, Callable[[str], Meaning], Callable[[Facts], str], Reader]] = {
        "smb": ("smb", sections_of_samba, smb.render_config, smb_part),
        "nfs": ("nfs", parse_exports, nfs.render_exports, nfs_part),
        "afp": ("afp", sections_of_netatalk, afp.render_config, afp_part),
    }
    if key not in kinds:
        return (), (
            Message("What is announced follows from what is shared, so nothing in this file can be a setting."),
        )
    protocol, meaning, render, reader = kinds[key]
    try:
        theirs, ours = meaning(text), meaning(render(facts))
        found = tuple(changed_shares(protocol, theirs, ours, facts, reader))
    except Failed as error:
        return (), (join_messages([error.what, error.said], ". "),)
    except Refused as refusal:
        return (), tuple(reason.message for reason in refusal.reasons)
    return found, lines_without_setting(theirs, meaning(render(with_changes(facts, found))))


Reader = Callable[[str, Mapping[str, str], Part | None], Part]


def share_path(name: str, values: Mapping[str, str]) -> str:
    """The folder that a share serves; an export is called by it."""
    return values.get("path", name)


def changed_shares(
    protocol: Protocol, theirs: Meaning, ours: Meaning, facts: Facts, reader: Reader
) -> Iterable[SetShare]:
    """The switches that differ. Raises Refused where a share is of no folder, or says what no setting may."""
    by_path: dict[str, str] = {}
    for name, values in theirs.items():
        if name.lower() == "global":
            continue
        path = share_path(name, values)
        if path in by_path:
            raise Refused(
                Reason(
                    "folder-served-twice",
                    "{path} is served twice, as {first} and as {second}. Larder serves a folder once.",
                    path=path,
                    first=by_path[path],
                    second=name,
                )
            )
        by_path[path] = name
    now = {dataset.mountpoint: (dataset, part) for dataset, part in wanted_shares(facts, protocol)}
    known = {dataset.mountpoint: dataset for dataset in facts.datasets if dataset.can_mount and dataset.mountpoint}
    for path, (dataset, part) in now.items():
        as_written = ours.get(getattr(part, "name", path))
        if as_written is None:
            continue  # it is locked or not mounted, and this file names only what is there
        if (called := by_path.get(path)) is None:
            yield SetShare.of(dataset.name, protocol, None)
        elif (called, theirs[called]) != (getattr(part, "name", path), as_written):
            yield SetShare.of(dataset.name, protocol, read_as(reader, called, theirs, part))
    for path, served_as in by_path.items():
        if path in now:
            continue
        if path not in known:
            raise Refused(
                Reason(
                    "share-outside-pools",
                    "[{share}] serves {path}, which is not a folder of your pools. Larder shares only those.",
                    share=served_as,
                    path=path or Message("nothing"),
                )
            )
        yield SetShare.of(known[path].name, protocol, read_as(reader, served_as, theirs, None))


def read_as(reader: Reader, name: str, theirs: Meaning, before: Part | None) -> Part:
    """A share of the file as a setting. Raises Refused, naming the share."""
    try:
        return reader(name, theirs[name], before)
    except Refused as refusal:
        raise Refused(
            Reason("share-not-adoptable", "[{share}]: {reason}", share=name[:80], reason=explain_error(refusal))
        ) from refusal


def with_changes(facts: Facts, found: Iterable[SetShare]) -> Facts:
    """The facts as they will be once these are set; what inherits a setting goes along."""
    known = {dataset.name: dataset for dataset in facts.datasets}
    for one in found:
        dataset = known[one.dataset]
        source = dataset.share_from if dataset.share_source == "inherited" else dataset.name
        text = (setting_of(dataset) or ShareSetting()).with_part(one.protocol, one.part).text()
        for other in known.values():
            if (
                other.name.startswith(f"{dataset.name}/")
                and other.share_source == "inherited"
                and other.share_from == source
            ):
                known[other.name] = replace(other, share=text, share_from=dataset.name)
        known[dataset.name] = replace(dataset, share=text, share_source="local", share_from="")
    return replace(facts, datasets=tuple(known.values()))


def lines_without_setting(theirs: Meaning, ours: Meaning) -> tuple[str, ...]:
    """What the edited file says and settings cannot, and what Larder would write and is not in it."""
    found: list[str] = []
    for name in sorted({*theirs, *ours}):
        there, here = theirs.get(name), ours.get(name)
        if there is None:
            found.append(
                Message(
                    "“{name}” is not in the file, and a folder of yours is shared as that through another one.",
                    name=name,
                )
            )
            continue
        if here is None:
            found.append(Message("“{name}” could not be made of a folder's settings.", name=name))
            continue
        for key in sorted({*there, *here}):
            if there.get(key) == here.get(key):
                continue
            if key not in here:
                said = f"{key} = {there[key]}" if there[key] else key
                found.append(
                    Message("“{line}” of {name} is nothing that Larder can keep as a setting.", line=said, name=name)
                )
            elif key not in there:
                said = f"{key} = {here[key]}" if here[key] else key
                found.append(Message("“{line}” of {name} is missing; Larder would write it.", line=said, name=name))
            else:
                found.append(
                    Message(
                        "“{line}” of {name}: Larder would write “{value}”.",
                        line=f"{key} = {there[key]}",
                        name=name,
                        value=here[key],
                    )
                )
    more = len(found) - MOST_REASONS
    return (*found[:MOST_REASONS], Message("And {more} more.", more=more)) if more > 0 else tuple(found)


def in_sections(text: str) -> Meaning:
    """A file of sections with its settings, in one spelling.
    Raises Failed where it is none, or says something twice."""
    parser = configparser.RawConfigParser(
        delimiters=("=",),
        comment_prefixes=("#", ";"),
        strict=True,
        default_section="none at all",
        empty_lines_in_values=False,
    )
    parser.optionxform = lambda key: " ".join(key.lower().split())  # type: ignore[method-assign,assignment]
    try:
        # An indented line is a setting here, not the rest of the one before.
        parser.read_string("\n".join(line.strip() for line in text.splitlines()))
    except configparser.Error as error:
        raise Failed(Message("The file cannot be read as settings"), " ".join(str(error).split())[:300]) from error
    return {
        # A folder may have two spaces in its name, and is another one than that with one.
        name: {key: value if key == "path" else " ".join((value or "").split()) for key, value in parser[name].items()}
        for name in parser.sections()
    }


def sections_of_samba(text: str) -> Meaning:
    found: Meaning = {}
    for name, values in in_sections(text).items():
        if name.lower() != "global" and smb.switched_off(name, values):
            continue
        found[name] = {}
        for key, value in values.items():
            yes = "yes" if value.lower() in YES else "no" if value.lower() in NO else value
            if key in OPPOSITE:
                found[name][OPPOSITE[key]] = {"yes": "no", "no": "yes"}.get(yes, yes)
            else:
                found[name][SAME.get(key, key)] = yes
    return found


def sections_of_netatalk(text: str) -> Meaning:
    return in_sections(text)


def parse_exports(text: str) -> Meaning:
    """Folders with their clients' options, in one order. Raises Failed at a line that is no export."""
    found: Meaning = {}
    for line in text.replace("\\\n", " ").splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = EXPORT.fullmatch(line.rstrip())
        if not match or CLIENT.sub("", match["clients"]).strip():
            raise Failed(Message("Larder cannot read this line of the file"), line.strip()[:200])
        path = nfs.unquote_path(match["quoted"] or match["plain"])
        if path in found:
            raise Failed(Message("Two lines of the file are for the same folder"), path[:200])
        found[path] = {
            one["host"]: ",".join(sorted(filter(None, one["options"].split(","))))
            for one in CLIENT.finditer(match["clients"])
        }
    return found


def size_kept(limit: int, before: Part | None) -> int:
    """A limit that the file tells in MiB; the exact one of the setting where that comes to the same."""
    now = getattr(before, "time_machine", 0)
    return now if now and max(now // MIB, 1) == limit else limit * MIB


def parse_number(value: str) -> int:
    return int(value) if value.isascii() and value.isdigit() and len(value) < 12 else 0


def smb_part(name: str, values: Mapping[str, str], before: Part | None) -> Smb:
    """A section of Samba's as a setting. Raises Refused where no setting may be so."""
    modules = values.get("vfs objects", "").split()
    guest = values.get("guest ok") == "yes"
    size = values.get("fruit:time machine max size", "")
    backups = values.get("fruit:time machine") == "yes" and size.endswith("M")
    return Smb(
        name=name,
        write=tuple(values.get("write list", "").split()),
        read=tuple(values.get("read list", "").split()),
        guest=("write" if values.get("read only") == "no" else "read") if guest else "no",
        hidden=values.get("browseable") == "no",
        recycle="recycle" in modules,
        exact_case=values.get("case sensitive") == "yes",
        mac=before.mac if isinstance(before, Smb) else "fruit" in modules,
        time_machine=size_kept(parse_number(size[:-1]), before) if backups else 0,
        previous="shadow_copy2" in modules,
        encrypt=values.get("smb encrypt") == "required",
    )


def afp_part(name: str, values: Mapping[str, str], before: Part | None) -> Afp:
    """A section of netatalk's as a setting. Raises Refused where no setting may be so."""
    read = tuple(values.get("rolist", "").split())
    backups = values.get("time machine") == "yes"
    return Afp(
        name=name,
        write=tuple(one for one in values.get("valid users", "").split() if one not in read),
        read=read,
        time_machine=size_kept(parse_number(values.get("vol size limit", "")), before) if backups else 0,
    )


def nfs_part(_path: str, values: Mapping[str, str], before: Part | None) -> Nfs:
    """The clients of one folder as a setting; where they differ, rendering finds it. Raises Refused."""
    options = set(next(iter(values.values()), "").split(","))
    return Nfs(
        hosts=tuple(values),
        write="rw" in options,
        root="no_root_squash" in options,
        sync="async" not in options,
        everybody_as=squashed_to(options, before) if "all_squash" in options else "",
    )


def squashed_to(options: set[str], before: Part | None) -> str:
    """The account as which everybody counts; what is none of this box stays as it was, and rendering finds it."""
    uid = next((one.partition("=")[2] for one in options if one.startswith("anonuid=")), "")
    found = next((one.name for one in accounts.read_accounts() if str(one.uid) == uid), "")
    return found or (before.everybody_as if isinstance(before, Nfs) else "") or NOBODY
