"""What the kernel serves over iSCSI and who is connected, from its own tree in configfs. It needs no root.

An initiator with an entry of its own has a file ``info`` with its addresses; one without is only named, in
``dynamic_sessions`` of its target (drivers/target/iscsi/iscsi_target_configfs.c).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from appliance.facts.sharing import Share
from appliance.shares.iscsi.configfs import Tree, read_tree

ADDRESS = re.compile(r"Address (?P<address>\S+) (?:TCP|SCTP|IB)")
MOST_SESSIONS = 50
LONGEST = 230


def served_shares(tree: Tree) -> Iterator[Share]:
    """The targets that take connections, with the volume's device as their place."""
    for path in sorted(one for one in tree.folders if one.startswith("iscsi/") and one.count("/") == 1):
        group = f"{path}/tpgt_1"
        stores = [to for link, to in tree.links.items() if link.startswith(f"{group}/lun/")]
        if tree.values.get(f"{group}/enable") != "1" or len(stores) != 1:
            continue
        if device := tree.values.get(f"{stores[0]}/udev_path"):
            yield Share("iscsi", path.partition("/")[2], device, tuple(read_initiators(tree, group)))


def read_initiators(tree: Tree, group: str) -> list[str]:
    """Who is connected to a target: ``iqn... (192.168.1.20)`` where the address is known."""
    found = []
    for entry in tree.below(f"{group}/acls"):
        info = tree.values.get(f"{entry}/info", "")
        if not info or info.startswith("No active"):
            continue
        where = sorted({plain_address(one["address"]) for one in ADDRESS.finditer(info)})
        name = entry.rpartition("/")[2]
        found.append(f"{name} ({', '.join(where)})" if where else name)
    for name in re.split(r"[\0\n]+", tree.values.get(f"{group}/dynamic_sessions", "")):
        if name and not any(one.split(" ")[0] == name for one in found):
            found.append(name)
    return [tidy_name(one) for one in sorted(found)[:MOST_SESSIONS]]


def plain_address(text: str) -> str:
    """An address without port and brackets; IPv4 is not shown in the form of IPv6."""
    inside = re.sub(r"^\[(.*)\](:[0-9]+)?$", r"\1", text)
    return (inside.partition(":")[0] if inside.count(":") == 1 else inside).removeprefix("::ffff:")


def tidy_name(text: str) -> str:
    """The name of an initiator, which it chose itself, cut and without invisible characters."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text[:LONGEST])


def read_served() -> tuple[Share, ...]:
    return tuple(served_shares(read_tree()))
