"""How a target in the kernel differs from what Larder would make, each difference with its sentence. Nothing here acts.

Secrets are compared, but neither they nor anything that was made of them is in a difference.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from appliance.message import Message, message_template
from appliance.shares.iscsi.configfs import Tree
from appliance.shares.iscsi.reconcile import (
    WRITE_BACK,
    group_path,
    has_all,
    is_right,
    open_acts,
    overrides,
    says_read_only,
    store_acts,
    store_path,
)
from appliance.shares.iscsi.sessions import tidy_name
from appliance.shares.iscsi.targets import Target

SENTENCES = {
    "unasked": message_template("Larder serves no volume under this name."),
    "gone": message_template("The target was deleted, so no computer can connect."),
    "off": message_template("The target is switched off, so no computer can connect."),
    "group": message_template("It has another portal group, {what}."),
    "disk-gone": message_template("The volume was removed from it: a computer that connects finds no disk."),
    "disk-other": message_template("Another disk is in the place of the volume."),
    "disk-added": message_template("It has another disk beside the volume, {what}."),
    "disk-off": message_template("Its disk is switched off."),
    "device": message_template("Its disk is {what}, not {wanted}."),
    "serial": message_template("Its disk has another serial number, so other computers take it for another disk."),
    "block": message_template("Its sectors have {what} bytes, not {wanted}."),
    "writable": message_template("Other computers can write to it, although the volume is read-only."),
    "read-only": message_template("Other computers can only read it."),
    "trim": message_template("Space that other computers free is not given back to the pool (TRIM)."),
    "cache": message_template(
        "It no longer reports its write cache. Other computers then do not ask for writes to be kept, and "
        "lose them if the power fails."
    ),
    "chap-off": message_template("CHAP was switched off: no secret is asked for."),
    "chap-on": message_template("CHAP was switched on: no computer can sign in."),
    "user": message_template("The other computer has to sign in as {what}, not as {wanted}."),
    "user-gone": message_template("The CHAP name and secret were removed."),
    "user-added": message_template("A CHAP name or secret was added."),
    "user-secret": message_template("The CHAP secret was changed."),
    "back": message_template("This box signs in as {what}, not as {wanted}."),
    "back-gone": message_template("This box no longer signs in to the other computer."),
    "back-added": message_template("This box signs in to the other computer, which was not set here."),
    "back-secret": message_template("The secret with which this box signs in was changed."),
    "all": message_template("Every computer that reaches this box may connect, not only those that are named."),
    "nobody": message_template("Computers without an entry of their own can no longer connect."),
    "shown": message_template("It is shown to every computer that asks, not only to those that are named."),
    "hidden": message_template("It is not shown to computers that ask for it."),
    "initiator-added": message_template("{what} may connect too."),
    "initiator-gone": message_template("{what} may no longer connect."),
    "initiator-disk": message_template("{what} may connect and does not find the volume."),
    "initiator-chap": message_template("CHAP is set differently for {what}."),
    "initiator-reads": message_template("{what} can only read."),
    "portal-added": message_template("It can also be reached at {what}."),
    "portal-gone": message_template("It can no longer be reached at {what}."),
    "other": message_template("Something else is set differently from what Larder sets."),
}


class TargetDifference(msgspec.Struct, frozen=True):
    """``kind`` is one of ``SENTENCES``; ``what`` is there, a name or an address, in place of ``wanted``."""

    kind: str
    what: str = ""
    wanted: str = ""


def find_differences(name: str, target: Target | None, tree: Tree) -> tuple[TargetDifference, ...]:
    """What is other than it should be of the target of that name; without ``target`` there should be none."""
    path = f"iscsi/{name}"
    if target is None:
        return (TargetDifference("unasked"),) if path in tree.folders else ()
    if path not in tree.folders:
        return (TargetDifference("gone"),)
    group = group_path(target)
    found = [TargetDifference("group", last(one)) for one in tree.below(path) if one != group]
    if group in tree.folders:
        found += [
            *([] if tree.values.get(f"{group}/enable") == "1" else [TargetDifference("off")]),
            *disk_differences(target, tree),
            *store_differences(target, tree),
            *access_differences(target, tree),
            *portal_differences(target, tree),
        ]
    else:
        found.append(TargetDifference("gone"))
    if not found and not is_as_made(target, tree):
        found.append(TargetDifference("other"))
    return tuple(dict.fromkeys(found))


def is_as_made(target: Target, tree: Tree) -> bool:
    """Whether nothing at all would be changed of a target."""
    portals = {f"{group_path(target)}/np/{one}" for one in target.portals}
    return (
        is_right(target, tree)
        and has_all((*store_acts(target), *open_acts(target)), tree)
        and set(tree.below(f"{group_path(target)}/np")) <= portals
    )


def last(path: str) -> str:
    """The last part of a path, as it may be shown."""
    return tidy_name(path.rpartition("/")[2])


def disk_differences(target: Target, tree: Tree) -> Iterator[TargetDifference]:
    """The volume as disk 0 of the target, and nothing else."""
    group, store = group_path(target), store_path(target)
    linked = {tree.links.get(link) for link in tree.below(f"{group}/lun/lun_0")}
    if not linked:
        yield TargetDifference("disk-gone")
    elif linked != {store}:
        yield TargetDifference("disk-other")
    for one in tree.below(f"{group}/lun"):
        if one != f"{group}/lun/lun_0":
            yield TargetDifference("disk-added", last(one))


def store_differences(target: Target, tree: Tree) -> Iterator[TargetDifference]:
    """What the disk of the volume says of itself."""
    store = store_path(target)
    if store not in tree.folders:
        yield TargetDifference("disk-gone")
        return
    values = {
        path.removeprefix(f"{store}/"): value for path, value in tree.values.items() if path.startswith(f"{store}/")
    }
    if values.get("enable") != "1":
        yield TargetDifference("disk-off")
        return
    if values.get("udev_path") != target.device:
        yield TargetDifference("device", tidy_name(values.get("udev_path", "")), target.device)
    if values.get("wwn/vpd_unit_serial") != target.serial:
        yield TargetDifference("serial")
    if values.get("attrib/block_size") != str(target.block):
        yield TargetDifference("block", tidy_name(values.get("attrib/block_size", "")), str(target.block))
    if says_read_only(values.get("info", "")) != target.read_only:
        yield TargetDifference("writable" if target.read_only else "read-only")
    if not target.read_only and {values.get("attrib/emulate_tpu"), values.get("attrib/emulate_tpws")} != {"1"}:
        yield TargetDifference("trim")
    if values.get("write_cache") != WRITE_BACK:
        yield TargetDifference("cache")


def access_differences(target: Target, tree: Tree) -> Iterator[TargetDifference]:
    """Who may connect, and how a computer proves who it is."""
    group, named = group_path(target), bool(target.initiators)
    attrib = {
        one: tree.values.get(f"{group}/attrib/{one}")
        for one in ("authentication", "generate_node_acls", "demo_mode_write_protect", "demo_mode_discovery")
    }
    if attrib["authentication"] != str(int(bool(target.user))):
        yield TargetDifference("chap-off" if target.user else "chap-on")
    if attrib["generate_node_acls"] != str(int(not named)):
        yield TargetDifference("all" if named else "nobody")
    if not named and attrib["demo_mode_write_protect"] != "0":
        yield TargetDifference("read-only")
    if attrib["demo_mode_discovery"] != str(int(not named)):
        yield TargetDifference("shown" if named else "hidden")
    yield from chap_differences(target, f"{group}/auth", tree, used=not named)
    entries = {last(one): one for one in tree.below(f"{group}/acls")}
    for initiator in target.initiators:
        if initiator in entries:
            yield from entry_differences(target, initiator, tree)
        else:
            yield TargetDifference("initiator-gone", initiator)
    for name in sorted(entries.keys() - set(target.initiators)):
        yield TargetDifference("initiator-added", name)


def entry_differences(target: Target, initiator: str, tree: Tree) -> Iterator[TargetDifference]:
    """The entry of one computer that may connect."""
    entry = f"{group_path(target)}/acls/{initiator}"
    disk = tree.links.get(f"{entry}/lun_0/lun_0")
    if disk != f"{group_path(target)}/lun/lun_0" or len(tree.below(entry)) != 1:
        yield TargetDifference("initiator-disk", initiator)
    for path, values in overrides(target):
        if path.startswith(f"{entry}/") and tree.values.get(path) in values:
            yield TargetDifference(
                "initiator-chap" if path.endswith("/authentication") else "initiator-reads", initiator
            )
    yield from chap_differences(target, f"{entry}/auth", tree, used=True)


def chap_differences(target: Target, path: str, tree: Tree, *, used: bool) -> Iterator[TargetDifference]:
    """Names and secrets of both ways; ``used``: those of the target belong here, else none do."""
    for way, name, secret in (("", target.user, target.secret), ("_mutual", target.back_user, target.back_secret)):
        there = (tree.values.get(f"{path}/userid{way}", ""), tree.values.get(f"{path}/password{way}", ""))
        wanted = (name, secret) if used else ("", "")
        kind = "back" if way else "user"
        if there == wanted:
            continue
        if not all(there) and all(wanted):
            yield TargetDifference(f"{kind}-gone", wanted=name)
        elif there[0] != wanted[0]:
            yield TargetDifference(kind if wanted[0] else f"{kind}-added", tidy_name(there[0]), wanted[0])
        else:
            yield TargetDifference(f"{kind}-secret" if wanted[0] else f"{kind}-added")


def portal_differences(target: Target, tree: Tree) -> Iterator[TargetDifference]:
    there = {last(one) for one in tree.below(f"{group_path(target)}/np")}
    for portal in sorted(there - set(target.portals)):
        yield TargetDifference("portal-added", portal)
    for portal in sorted(set(target.portals) - there):
        yield TargetDifference("portal-gone", portal)


def explain_difference(found: TargetDifference) -> Message:
    """A difference as a sentence."""
    return Message(SENTENCES.get(found.kind, SENTENCES["other"]), what=found.what, wanted=found.wanted)
