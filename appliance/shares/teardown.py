"""Stop serving shares before their folder or pool goes away, moves or is locked, and serve
them again from a new place."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from pathlib import Path

from appliance import command
from appliance.errors import Failed, LarderError
from appliance.facts.box import Facts
from appliance.facts.datasets import Dataset
from appliance.facts.sharing import Session, Share
from appliance.formatting import names_text
from appliance.message import Message
from appliance.operation import Step, Work
from appliance.shares import approved, connections, publish
from appliance.shares.iscsi import chap, configfs, divergence, fingerprints, reconcile
from appliance.shares.iscsi.part import place_of
from appliance.shares.iscsi.targets import wanted_targets
from appliance.shares.settings import CALLED, ISCSI
from appliance.zfs import status

BUSY = ("busy", "could not unmount", "cannot unmount")
SHARES, CONNECTED = Message("Shares"), Message("Connected now")  # labels of a review page
MOST_NAMED = 10
MOST_PROGRAMS = 5


def shares_at(facts: Facts, datasets: Iterable[Dataset]) -> list[Share]:
    """The shares that serve one of these datasets or a folder in it."""
    places = {place for one in datasets if (place := place_of(one)).startswith("/") and place != "/"}
    return [share for share in facts.shares if any(f"{share.path}/".startswith(f"{place}/") for place in places)]


def shares_of_pool(facts: Facts, pool: str) -> list[Share]:
    """The shares that serve a folder of the pool."""
    return shares_at(facts, [dataset for dataset in facts.datasets if dataset.pool == pool])


def review_facts(facts: Facts, shares: Collection[Share], *, label: str = SHARES) -> dict[str, str]:
    """The shares that stop and who is connected to them now, for a review page.
    Of what is agreed to only those are a part who lose a disk (``connected_computers``)."""
    rows = {
        label: ", ".join(share.name for share in shares),
        CONNECTED: ", ".join(filter(None, (connected_users(facts.sessions, shares), *open_targets(shares)))),
    }
    return {key: value for key, value in rows.items() if value}


def connected_users(sessions: Iterable[Session], shares: Iterable[Share]) -> str:
    """Who is connected to these shares, for a review page; empty where nobody is."""
    names = {share.name.lower() for share in shares}
    people = [
        Message("{user} from {machine} ({share})", user=one.user, machine=one.machine, share=one.share)
        for one in sessions
        if one.share.lower() in names
    ]
    return names_text(people, MOST_NAMED)


def open_targets(shares: Iterable[Share]) -> list[str]:
    """The computers that have a volume of these open over iSCSI."""
    return sorted({who for share in shares if share.protocol == ISCSI for who in share.open_by})


def connected_computers(shares: Collection[Share]) -> dict[str, object]:
    """For a plan's identity: who has a volume open. One that connects after the review was not agreed to."""
    found = sorted({who.partition(" ")[0] for who in open_targets(shares)})
    return {"connected": found} if found else {}


def disk_warnings(shares: Collection[Share]) -> tuple[str, ...]:
    """What a computer goes through whose disk is taken away."""
    found = open_targets(shares)
    return (
        (
            Message(
                "{found} uses it as a disk now. That computer sees its disk fail, and what it has not "
                "written yet is lost. Shut it down first, or eject the disk there.",
                found=", ".join(found),
            ),
        )
        if found
        else ()
    )


def close_targets(shares: Collection[Share]) -> None:
    """Take the targets down that serve these volumes; what ``serve_datasets`` serves again is made anew. Raises Failed,
    Refused on a target that was changed by hand."""
    names = {share.name for share in shares if share.protocol == ISCSI}
    if not names:
        return
    wanted, _left = wanted_targets(publish.agreed_facts(), chap.read_secrets)
    with fingerprints.hold_targets():
        tree = configfs.read_tree()
        edits = divergence.find_edits(wanted, tree)
        divergence.refuse_edits(names, edits)
        fingerprints.begin_changes(names)
        for name in sorted(names):
            path = f"iscsi/{name}"
            stores = {to for link, to in tree.links.items() if link.startswith(f"{path}/tpgt_1/lun/")}
            if path in tree.folders:
                configfs.carry_out(reconcile.remove_target(path, tree))
            configfs.carry_out(configfs.TreeAct("rmdir", store) for store in sorted(stores))
        fingerprints.note_left(configfs.read_tree(), but=edits)


def close_shares(shares: Collection[Share]) -> None:
    """End what clients have open of these shares. Raises Failed."""
    close_targets(shares)
    for protocol, one in publish.SERVING.items():
        one.close([share for share in shares if share.protocol == protocol])


def serve_datasets(datasets: Iterable[Dataset], note: Callable[[str], None]) -> None:
    """Have every daemon serve what these datasets ask for and the owner agreed to.
    Raises Failed, Refused on a hand edit."""
    publish.publish_shares(publish.agreed_facts(datasets), insist=False, note=note)


def forget_approval(guids: Iterable[int]) -> None:
    """Withdraw the approval to share these datasets: when they come back, their shares are offered, not switched on."""
    for guid in approved.read_approved().intersection(guids):
        approved.set_approved(guid, share=False)


def publish_commands() -> list[str]:
    """What publishing writes and reloads, a line for each protocol."""
    files = [f"write {one.owned.path}, reload {' '.join(one.units)}" for one in publish.SERVING.values()]
    return [*files, f"write {configfs.ROOT}"]


def close_commands(shares: Collection[Share]) -> str:
    """The shares that are closed, a line each, for a step of a plan."""
    return "\n".join(f"close {share.name} ({CALLED[share.protocol]})" for share in shares)


def close_step(shares: Collection[Share]) -> list[Step]:
    """End what clients have open, where there is a share. They may come back while the folder is there."""
    names = sorted({share.name for share in shares})

    def act(work: Work) -> None:
        close_shares(shares)
        work.note(Message("Everybody who had {names} open was disconnected", names=", ".join(names)))

    return (
        [Step("close", Message("End what clients have open"), close_commands(shares), act, tuple(names))]
        if names
        else []
    )


def stop_step(shares: Collection[Share], guids: frozenset[int]) -> list[Step]:
    """Stop serving these datasets for good, where there is a share."""
    names = sorted({share.name for share in shares})

    def act(work: Work) -> None:
        serve_datasets((one for one in status.read_datasets() if one.guid not in guids), work.note)
        close_shares(shares)
        forget_approval(guids)
        for guid in guids:
            chap.delete_secrets(guid)

    return (
        [
            Step(
                "shares",
                Message("Stop the shares {names}", names=", ".join(names)),
                close_commands(shares),
                act,
                tuple(names),
            )
        ]
        if names
        else []
    )


def stop_pool_step(pool: str, shares: Iterable[Share], *, forget: bool) -> Step:
    """Stop serving a pool's shares and end the sessions on them.

    ``forget``: a share that is imported again later, here or elsewhere, is offered and not switched on automatically.
    """
    closing = sorted({share.name for share in shares})

    def act(work: Work) -> None:
        every = status.read_datasets()
        for session in connections.read_sessions():
            if session.share.lower() in {name.lower() for name in closing}:
                work.note(
                    Message(
                        "{user} at {machine} had {share} open and was disconnected",
                        user=session.user,
                        machine=session.machine,
                        share=session.share,
                    )
                )
        serve_datasets((one for one in every if one.pool != pool), work.note)
        if forget:
            forget_approval(one.guid for one in every if one.pool == pool)

    shown = "\n".join([*publish_commands(), *(f"close {name}" for name in closing)])
    return Step("shares", Message("Stop its shares and disconnect who uses them"), shown, act, tuple(closing))


def serve_step(*, stays: bool) -> Step:
    """Serve the folders where they are now; ``stays``: whether any share of them is left."""

    def act(work: Work) -> None:
        serve_datasets(status.read_datasets(), work.note)

    title = Message("Share it from its new place") if stays else Message("Stop sharing it")
    return Step("serve", title, "\n".join(publish_commands()), act)


def all_served(facts: Facts, datasets: Iterable[Dataset]) -> bool:
    """Whether each of these datasets that somebody agreed to share has its shares at its place."""
    here = {(share.protocol, share.path) for share in facts.shares}
    places = {place_of(one) for one in datasets}
    # Out of all datasets: one that inherits its setting goes with the one that has it.
    agreed = publish.only_agreed(facts, approved.read_approved())
    volumes, _left = wanted_targets(agreed, chap.read_secrets)
    wanted = {(ISCSI, one.device) for one in volumes} | {
        (protocol, share.path) for protocol, one in publish.SERVING.items() for share in one.shares(agreed)
    }
    return all(one in here for one in wanted if one[1] in places)


def programs_using(folders: Iterable[str], proc: Path = Path("/proc")) -> list[str]:
    """The programs that have something open below these folders: ``rsync (process 811): /tank/photos``."""
    wanted = tuple(folder.rstrip("/") for folder in folders if folder not in {"", "/"})
    found: list[str] = []
    for process in sorted((one for one in proc.iterdir() if one.name.isdigit()), key=lambda one: int(one.name)):
        try:
            links = [process / "cwd", process / "root", *(process / "fd").iterdir()]
            name = (process / "comm").read_text().strip()
        except OSError:
            continue
        for link in links:
            try:
                target = str(link.readlink())
            except OSError:
                continue
            if any(target == folder or target.startswith(f"{folder}/") for folder in wanted):
                found.append(
                    Message(
                        "{name} (process {process}): {target}", name=name, process=process.name, target=target[:200]
                    )
                )
                break
    return found


def run_unmounting(argv: list[str], name: str, folders: Iterable[str], *, serve_again: bool) -> None:
    """Run a command that needs these folders unmounted; where one is busy, say which programs use it. Raises Failed.

    ``serve_again``: share what stays after a failure. Without it the shares stay off, as the job's hint says.
    """
    places = list(folders)
    try:
        command.run(argv, timeout=600)
    except command.CommandFailed as failed:
        if not any(word in failed.said for word in BUSY):
            raise
        users = programs_using(places)
        if serve_again:
            # The error to report is who uses the folder, even if serving it again fails too.
            with suppress(LarderError):
                serve_datasets(status.read_datasets(), lambda _text: None)
        who = (
            Message("Still using it: {users}.", users=names_text(users, MOST_PROGRAMS, "; "))
            if users
            else Message("A computer may use it over NFS, or a backup may be running.")
        )
        raise Failed(
            Message("{name} is still in use. {who} Stop that, then try again", name=name, who=who), failed.said
        ) from failed
