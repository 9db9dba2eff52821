"""From the targets that there should be and the tree that is there to the acts that make one of the other.
Nothing here acts.

A target that is as it should be is left alone, with the sessions on it: only portals come and go without a session
being ended. Everything else that differs, such as who may connect, has the target taken down and made again, so that
nobody stays connected who is no longer let in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from appliance.shares.iscsi.configfs import STORES, Tree, TreeAct
from appliance.shares.iscsi.part import PREFIX
from appliance.shares.iscsi.targets import Target

VENDOR, PRODUCT = "LARDER", "ZFS volume"  # at most 8 and 16 characters (SPC-4)
WRITE_BACK = "write back"  # a zvol keeps writes in memory until it is told to flush, and does then (zvol_os.c)
ONLY_WRITTEN = ("/control", "/vendor_id", "/product_id")  # not read back: they say nothing that other values do not


class TreeChange(msgspec.Struct, frozen=True):
    """Acts that belong together: one that fails keeps no other from being tried. ``of`` is a target or a disk."""

    of: str
    acts: tuple[TreeAct, ...]


def plan_changes(wanted: Iterable[Target], tree: Tree) -> list[TreeChange]:
    """What to do, in order: take down, then make. Empty where everything is as it should be."""
    targets = list(wanted)
    down_targets, down_stores = find_outdated(targets, tree)
    changes = [TreeChange(path, tuple(remove_target(path, tree))) for path in sorted(down_targets)]
    changes += [TreeChange(path, (TreeAct("rmdir", path),)) for path in sorted(down_stores)]
    gone = down_targets | down_stores
    left = Tree(
        frozenset(one for one in tree.folders if not is_inside(one, gone)),
        {path: value for path, value in tree.values.items() if not is_inside(path, gone)},
        {path: value for path, value in tree.links.items() if not is_inside(path, gone)},
    )
    for target in targets:
        if acts := tuple(acts_for(target, left)):
            changes.append(TreeChange(f"iscsi/{target.iqn}", acts))
    if not targets and STORES in tree.folders and left.below(STORES) == []:
        changes.append(TreeChange(STORES, (TreeAct("rmdir", STORES),)))
    return changes


def is_inside(path: str, folders: Iterable[str]) -> bool:
    return any(path == one or path.startswith(f"{one}/") for one in folders)


def leave_out(tree: Tree, names: Iterable[str], stores: Iterable[str] = (), *, but: Iterable[str] = ()) -> Tree:
    """The tree without these targets, the disks in them and these disks: nobody changes what is not in it.
    ``but``: disks that stay in it, since they are of other targets too."""
    targets = {f"iscsi/{name}" for name in names}
    linked = {to for link, to in tree.links.items() if is_inside(link, targets) and to.startswith("core/")}
    hidden = targets | (linked | tree.folders.intersection(stores)) - set(but)
    return Tree(
        frozenset(one for one in tree.folders if not is_inside(one, hidden)),
        {path: value for path, value in tree.values.items() if not is_inside(path, hidden)},
        {path: to for path, to in tree.links.items() if not is_inside(path, hidden)},
    )


def find_outdated(targets: list[Target], tree: Tree) -> tuple[set[str], set[str]]:
    """The targets and the disks that have to be taken down: those nobody wants, and those that differ."""
    wanted = {f"iscsi/{one.iqn}": one for one in targets}
    stores = {store_path(one): one for one in targets}
    present = {one for one in tree.folders if one.count("/") == 1 and one.startswith(f"iscsi/{PREFIX}")}
    disks = {one for one in tree.folders if one.count("/") == 2 and one.startswith("core/")}
    down_stores = {one for one in disks if one not in stores or not has_all(store_acts(stores[one]), tree)}
    down = {one for one in present if one not in wanted or not is_right(wanted[one], tree)}
    # A disk is only let go by who uses it.
    down |= {
        "/".join(link.split("/")[:2])
        for link, to in tree.links.items()
        if to in down_stores and link.startswith("iscsi/")
    }
    return down & present, down_stores


def store_path(target: Target) -> str:
    return f"{STORES}/{target.store}"


def group_path(target: Target) -> str:
    return f"iscsi/{target.iqn}/tpgt_1"


def store_acts(target: Target) -> Iterator[TreeAct]:
    """The disk behind a target. What it says of itself can only be set before a target uses it."""
    path = store_path(target)
    yield TreeAct("mkdir", path)
    yield TreeAct("write", f"{path}/control", f"udev_path={target.device},readonly={int(target.read_only)}")
    yield TreeAct("write", f"{path}/udev_path", target.device)
    yield TreeAct("write", f"{path}/enable", "1")
    # Where its device denied that, the kernel would drop what computers send to have writes kept (submit_bio_noacct).
    yield TreeAct("cache", f"{path}/write_cache", WRITE_BACK)
    yield TreeAct("write", f"{path}/attrib/block_size", str(target.block))
    yield TreeAct("write", f"{path}/wwn/vpd_unit_serial", target.serial)
    yield TreeAct("write", f"{path}/wwn/vendor_id", VENDOR)
    yield TreeAct("write", f"{path}/wwn/product_id", PRODUCT)
    if not target.read_only:
        # TRIM: the volume gives back to the pool what the other computer no longer uses.
        yield TreeAct("write", f"{path}/attrib/emulate_tpu", "1")
        yield TreeAct("write", f"{path}/attrib/emulate_tpws", "1")


def chap_acts(target: Target, path: str) -> Iterator[TreeAct]:
    """Names and secrets. The kernel asks for them in both directions as soon as all four are there."""
    if target.user:
        yield TreeAct("write", f"{path}/userid", target.user)
        yield TreeAct("write", f"{path}/password", target.secret)
    if target.back_user:
        yield TreeAct("write", f"{path}/userid_mutual", target.back_user)
        yield TreeAct("write", f"{path}/password_mutual", target.back_secret)


def target_acts(target: Target) -> Iterator[TreeAct]:
    """A target up to the moment before it takes connections.

    Without named initiators the kernel makes an entry for each that comes (``generate_node_acls``) and CHAP is asked
    with the names and secrets of the whole target; with named ones each has an entry, and nobody else gets in.
    """
    group, named = group_path(target), bool(target.initiators)
    yield TreeAct("mkdir", f"iscsi/{target.iqn}")
    yield TreeAct("mkdir", group)
    yield TreeAct("write", f"{group}/attrib/authentication", str(int(bool(target.user))))
    yield TreeAct("write", f"{group}/attrib/generate_node_acls", str(int(not named)))
    yield TreeAct("write", f"{group}/attrib/cache_dynamic_acls", str(int(not named)))
    yield TreeAct("write", f"{group}/attrib/demo_mode_write_protect", str(int(named)))
    # By itself the kernel (6.12) tells everybody who asks of every target, also those whom it then does not let in.
    yield TreeAct("write", f"{group}/attrib/demo_mode_discovery", str(int(not named)))
    yield TreeAct("mkdir", f"{group}/lun/lun_0")
    yield TreeAct("link", f"{group}/lun/lun_0/{target.store}", store_path(target))
    if not named:
        yield from chap_acts(target, f"{group}/auth")
    for initiator in target.initiators:
        entry = f"{group}/acls/{initiator}"
        yield TreeAct("mkdir", entry)
        yield TreeAct("mkdir", f"{entry}/lun_0")
        yield TreeAct("link", f"{entry}/lun_0/lun_0", f"{group}/lun/lun_0")
        yield from chap_acts(target, f"{entry}/auth")


def open_acts(target: Target) -> Iterator[TreeAct]:
    """Have it take connections."""
    for portal in target.portals:
        yield TreeAct("mkdir", f"{group_path(target)}/np/{portal}")
    yield TreeAct("write", f"{group_path(target)}/enable", "1")


def acts_for(target: Target, tree: Tree) -> Iterator[TreeAct]:
    """What is missing of a target that is either right as far as it goes or not there."""
    if STORES not in tree.folders:
        yield TreeAct("mkdir", STORES)
    if store_path(target) not in tree.folders:
        yield from store_acts(target)
    group = group_path(target)
    if f"iscsi/{target.iqn}" not in tree.folders:
        yield TreeAct("mkdir", "iscsi")
        yield from target_acts(target)
    portals = {f"{group}/np/{one}" for one in target.portals}
    for path in tree.below(f"{group}/np"):
        if path not in portals:
            yield TreeAct("rmdir", path)
    for act in open_acts(target):
        if not has_all([act], tree):
            yield act


def has_all(acts: Iterable[TreeAct], tree: Tree) -> bool:
    """Whether the tree is as these acts would make it."""
    return all(is_done(act, tree) for act in acts)


def is_done(act: TreeAct, tree: Tree) -> bool:
    if act.kind == "mkdir":
        return act.path in tree.folders
    if act.kind == "link":
        return tree.links.get(act.path) == act.value
    if act.path.endswith("/control"):
        return says_read_only(tree.values.get(act.path.replace("/control", "/info"), "")) == act.value.endswith("=1")
    return act.path.endswith(ONLY_WRITTEN) or tree.values.get(act.path) == act.value


def says_read_only(info: str) -> bool:
    return "readonly: 1" in info


def overrides(target: Target) -> Iterator[tuple[str, set[str]]]:
    """Values of initiators' entries that Larder leaves to the kernel, each with those that make an exception of the
    entry: no secret asked for, or one that is not known; or nothing but reading. Old kernels do not have the first."""
    for initiator in target.initiators:
        entry = f"{group_path(target)}/acls/{initiator}"
        yield f"{entry}/attrib/authentication", {"0", "1"}
        if not target.read_only:
            yield f"{entry}/lun_0/write_protect", {"1"}


def is_right(target: Target, tree: Tree) -> bool:
    """Whether a target has all that it should have and nobody else may use it. Portals are not looked at."""
    acts, path, group = list(target_acts(target)), f"iscsi/{target.iqn}", group_path(target)
    made = {act.path for act in acts if act.kind in {"mkdir", "link"}}
    written = {act.path for act in acts if act.kind == "write"}
    there = {
        one for one in (*tree.folders, *tree.links) if is_inside(one, [path]) and not is_inside(one, [f"{group}/np"])
    }
    secret = {one for one, value in tree.values.items() if is_inside(one, [path]) and "/auth/" in one and value}
    excepted = any(tree.values.get(one) in values for one, values in overrides(target))
    return has_all(acts, tree) and there <= made and secret <= written and not excepted


def remove_target(path: str, tree: Tree) -> Iterator[TreeAct]:
    """Take a target down, innermost first; what is connected to it is disconnected."""
    for group in tree.below(path):
        yield TreeAct("write", f"{group}/enable", "0")
        for entry in tree.below(f"{group}/acls"):
            for lun in tree.below(entry):
                yield from (TreeAct("unlink", link) for link in tree.below(lun))
                yield TreeAct("rmdir", lun)
            yield TreeAct("rmdir", entry)
        for lun in tree.below(f"{group}/lun"):
            yield from (TreeAct("unlink", link) for link in tree.below(lun))
            yield TreeAct("rmdir", lun)
        yield from (TreeAct("rmdir", portal) for portal in tree.below(f"{group}/np"))
        yield TreeAct("rmdir", group)
    yield TreeAct("rmdir", path)
