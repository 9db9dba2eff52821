"""Have the kernel serve over iSCSI exactly the volumes that ask for it and that somebody here
agreed to, and read it back."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from appliance import command
from appliance.errors import Failed, LarderError, explain_error
from appliance.facts.box import Facts
from appliance.formatting import rest_of_sentence
from appliance.message import Message, join_messages
from appliance.shares.iscsi import chap, configfs, divergence, fingerprints, reconcile, sessions
from appliance.shares.iscsi.part import device_of
from appliance.shares.iscsi.targets import Target, wanted_targets
from appliance.zfs import volmode

MODULES = ("target_core_mod", "target_core_iblock", "iscsi_target_mod")
SECONDS_FOR_DEVICE = 30.0


def serve_volumes(
    facts: Facts,
    *,
    insist: bool = True,
    changed: Collection[str] | None = None,
    over: str = "",
    note: Callable[[str], None] = lambda _text: None,
) -> None:
    """Make the kernel's tree as these facts want it. What is as it should be is not touched, and neither is a target
    that was changed by hand, unless ``over`` is its fingerprint.

    Raises Failed where a volume is not served that has to be: one of those at ``changed`` (devices), or any without it.
    Of others, and without ``insist`` of all, it is only noted. Raises Refused where a target should go, or ``over``
    says how it was, and it was changed by hand since.
    """
    wanted, left = wanted_targets(facts, chap.read_secrets)
    known = fingerprints.read_left()
    if not wanted and not left and not configfs.read_tree().folders and not (known and known.targets):
        return
    with fingerprints.hold_targets():
        tree = configfs.read_tree()
        edits = divergence.find_edits(wanted, tree)
        if over and over not in {one.seen for one in edits.values()}:
            raise divergence.changed_again()
        kept = {name for name, one in edits.items() if one.seen != over}
        try:
            unserved, stale = change_tree(wanted, kept, tree, note)
        finally:
            fingerprints.note_left(configfs.read_tree(), but=kept)
    left |= unserved | {one.device: reason_kept(one) for one in wanted if one.iqn in kept}
    minded = {device: why for device, why in left.items() if insist and (changed is None or device in changed)}
    for device, why in left.items():
        if device not in minded:
            note(why)
    if minded:
        raise Failed(join_messages([*minded.values()], ". "))
    if stale:
        raise stale
    # Those that Larder made are in the way of whoever takes the volume away; one that was made by hand is not its own.
    made = kept.intersection(known.targets if known else ()) - {one.iqn for one in wanted}
    if made and changed is None:
        raise divergence.changed_by_hand(made)


def reason_kept(target: Target) -> str:
    """Why a target is not changed, as a sentence without its full stop."""
    return rest_of_sentence(explain_error(divergence.changed_by_hand([target.iqn])))


def change_tree(
    wanted: Iterable[Target], kept: Collection[str], tree: configfs.Tree, note: Callable[[str], None]
) -> tuple[dict[str, str], Failed | None]:
    """Make the tree as it is wanted, but for the targets of ``kept``.

    Returns why volumes are not served, by their devices, and what is still served that nobody wants.
    """
    asked = [one for one in wanted if one.iqn not in kept]
    theirs = [reconcile.store_path(one) for one in wanted if one.iqn in kept]
    ours = [reconcile.store_path(one) for one in asked]
    tree = reconcile.leave_out(tree, kept, theirs, but=ours)
    if asked:
        load_modules()
        make_reservation_folder(note)
    left = prepare_devices(asked, tree)
    ready = [one for one in asked if one.device not in left]

    def plan_now() -> list[reconcile.TreeChange]:
        found = reconcile.plan_changes(ready, reconcile.leave_out(configfs.read_tree(), kept, theirs, but=ours))
        return [one for one in found if not (kept and one.of == configfs.STORES)]  # theirs may be in it

    failures = carry_out_changes(plan_now())
    # A disk that was let go may have been in the way of its successor, so what is still missing is tried once more.
    missing = plan_now()
    if missing and failures:
        failures = carry_out_changes(missing)
        missing = plan_now()
    forget_reservations(tree, asked)
    left |= explain_missing(ready, {one.of for one in missing}, failures)
    stale = {one.of for one in missing} - {f"iscsi/{one.iqn}" for one in ready}
    text = Message("What is no longer shared is still served: {sorted}", sorted=", ".join(sorted(stale)))
    return left, Failed(text, "; ".join(failures.values())) if stale else None


def load_modules() -> None:
    """Load the kernel's iSCSI target. Raises Failed where this kernel has none."""
    try:
        command.run(["modprobe", "-a", *MODULES], timeout=120)
    except command.CommandFailed as failed:
        raise Failed(Message("This box's kernel cannot serve disks over iSCSI"), failed.said) from failed


def make_reservation_folder(note: Callable[[str], None]) -> None:
    """Make the folder in which the kernel notes who has reserved a disk (SPC-4 persistent reservations, for clusters).

    It makes no folder itself, and refuses every reservation that it cannot note, also those that a restart may end
    (target_core_pr.c). Where the folder is, it says itself.
    """
    try:
        reservation_folder().mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        note(
            Message("Computers cannot reserve the disks for themselves: {reason}", reason=os.strerror(error.errno or 0))
        )


def reservation_folder() -> Path:
    """Where the kernel notes reservations, in a file ``aptpl_`` with the serial number of the disk. Raises OSError."""
    return Path("/", (configfs.ROOT / "dbroot").read_text().strip(), "pr")


def forget_reservations(tree: configfs.Tree, wanted: Iterable[Target]) -> None:
    """Delete what the kernel noted of disks that it had and that nobody wants any more."""
    kept = {reconcile.store_path(one) for one in wanted}
    for path in tree.folders - kept:
        if configfs.STORE.fullmatch(path.rpartition("/")[2]):
            with contextlib.suppress(OSError):
                (reservation_folder() / f"aptpl_{path.rpartition('-')[2]}").unlink()


def carry_out_changes(changes: Iterable[reconcile.TreeChange]) -> dict[str, str]:
    """Carry out each change; one that fails keeps none of the others from being tried. Returns what failed, and why."""
    failures = {}
    todo = list(changes)
    fingerprints.begin_changes(one.of.removeprefix("iscsi/") for one in todo if one.of.startswith("iscsi/"))
    for change in todo:
        try:
            configfs.carry_out(change.acts)
        except LarderError as error:
            failures[change.of] = explain_error(error)
    return failures


def explain_missing(wanted: Iterable[Target], missing: set[str], failures: dict[str, str]) -> dict[str, str]:
    """Why targets are not as they should be, by their devices."""
    found = {}
    for one in wanted:
        if f"iscsi/{one.iqn}" in missing:
            said = failures.get(f"iscsi/{one.iqn}", "")
            found[one.device] = unserved_text(one, said)
    return found


def unserved_text(target: Target, why: str) -> str:
    """That a target is not served, and why where that is known."""
    return join_messages([Message("{iqn} is not served", iqn=target.iqn), why], ": ")


def prepare_devices(wanted: Iterable[Target], tree: configfs.Tree) -> dict[str, str]:
    """Have the device of each volume that is not served yet in its place, without the kernel
    looking for partitions on it.

    Returns why the others cannot be served, by their devices.
    """
    left = {}
    for one in wanted:
        if reconcile.store_path(one) in tree.folders:
            continue
        try:
            open_device(one.device.removeprefix(device_of("")), one.device)
        except LarderError as error:
            left[one.device] = unserved_text(one, explain_error(error))
    return left


def read_mode(volume: str) -> tuple[str, str]:
    """``volmode`` of a volume and where that comes from: local, default, received, inherited from … Raises Failed."""
    argv = ["zfs", "get", "-Hp", "-o", "value,source", "volmode", volume]
    mode, _tab, source = command.run(argv, timeout=60).stdout.strip().partition("\t")
    return mode, source


def put_mode_back(volume: str, former: tuple[str, str]) -> None:
    """Set ``volmode`` as it was, where it has changed since. Raises Failed."""
    if read_mode(volume) == former:
        return
    mode, source = former
    received = ["-S"] if source == "received" else []
    command.run(
        ["zfs", "set", f"volmode={mode}", volume]
        if source == "local"
        else ["zfs", "inherit", *received, "volmode", volume],
        timeout=60,
    )


def open_device(volume: str, device: str) -> None:
    """Set ``volmode=dev``, zfsprops(7), and wait for the device: what is on the volume belongs to the other computer,
    and this box looks for no partitions in it. Raises Failed.

    ZFS then takes the old device away and makes a new one, some time after the command has ended.
    """
    said, _source = read_mode(volume)
    before = device_number(Path(device))
    if said != "dev":
        command.run(volmode.mode_argv(volume), timeout=60)
    until = time.monotonic() + SECONDS_FOR_DEVICE
    while time.monotonic() < until:
        now = device_number(Path(device))
        if now and (said == "dev" or now != before):
            # udev may still be about to take away the link of the old device, and puts that of
            # the new one there after it.
            command.run(["udevadm", "settle", "--timeout=30"], timeout=40, accept=range(256))
            if device_number(Path(device)) == now:
                return
        time.sleep(0.25)
    if not device_number(Path(device)):
        raise Failed(Message("The device {device} did not appear, so the volume is not served", device=device))


def device_number(device: Path) -> str:
    """What tells a device from its successor of the same name, which the kernel counts; empty where there is none, also
    in the moment in which it goes."""
    if not device.is_block_device():
        return ""
    name = device.resolve().name
    try:
        return f"{name} {(configfs.BLOCK / name / 'diskseq').read_text().strip()}"
    except OSError:
        return ""


def is_served(iqn: str, device: str) -> bool:
    """Whether the kernel serves that device under that name now."""
    return any((share.name, share.path) == (iqn, device) for share in sessions.read_served())


def stop_all(note: Callable[[str], None]) -> None:
    """Stop serving everything; the settings stay."""
    failures = carry_out_changes(reconcile.plan_changes([], configfs.read_tree()))
    fingerprints.note_left(configfs.read_tree())
    for why in failures.values():
        note(why)
