"""What serving a protocol takes: a file that Larder owns, a daemon that takes it up, and that daemon's own answer.

Each protocol has a module with one ``Serving``; ``share.py`` drives all of them alike.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Protocol as Interface

from msgspec.structs import replace

from appliance.errors import Failed, LarderError, Reason, explain_error
from appliance.facts.box import Facts
from appliance.facts.datasets import Dataset
from appliance.facts.sharing import Share, SmbPolicy
from appliance.message import Message
from appliance.operation import Work
from appliance.shares import afp, approved, discovery, nfs, smb, smb_security
from appliance.shares.iscsi import serve, sessions
from appliance.shares.owned_file import OwnedFile
from appliance.shares.settings import ISCSI, PROTOCOLS, Part, Protocol
from appliance.system import accounts
from appliance.zfs import status

SECONDS_TO_TAKE_UP = 30.0
Served = frozenset[tuple[str, str]]


class Serving(Interface):
    """One protocol. ``units`` are systemd's, the one that serves first; a share without a name
    (NFS) is called by its path."""

    @property
    def name(self) -> Protocol: ...

    @property
    def units(self) -> tuple[str, ...]: ...

    @property
    def owned(self) -> OwnedFile:
        """The file, with the daemon's own check of it."""

    def shares(self, facts: Facts) -> tuple[Share, ...]:
        """What ``render`` makes of these facts: only datasets that can be served, the first of a name."""

    def render(self, facts: Facts) -> str:
        """The file's text. The same facts always make the same text."""

    def against(self, dataset: Dataset, part: Part, facts: Facts) -> Iterator[Reason]:
        """What speaks against this part beyond what holds for every protocol (``share.py``)."""

    def warnings(self, part: Part) -> Iterator[str]:
        """What a person has to know before this part is switched on."""

    def take_up(self, shares: tuple[Share, ...]) -> None:
        """Have the daemon serve its file without dropping clients: start and enable it, or reload; with no shares at
        all, stop and disable it where it was Larder that started it. Raises Failed."""

    def served(self) -> Served:
        """Names and paths that the running daemon itself says it serves; empty where it does not run. Raises Failed."""

    def close(self, gone: Iterable[Share]) -> None:
        """Disconnect who still has these former shares open. Raises Failed."""

    def why_not(self, paths: Collection[str] | None = None) -> str:
        """Why the daemon does not serve all of its file, in a sentence, where that can be told; else empty.
        ``paths``: of these folders only."""

    def configured(self) -> tuple[Share, ...]:
        """The shares of the file as it stands, for the inventory: needs no root and asks no daemon."""


# Every protocol that this box can serve, in the order of the switches.
SERVING: dict[Protocol, Serving] = {found.name: found for found in (smb.SERVING, nfs.SERVING, afp.SERVING)}


def configured_shares() -> tuple[Share, ...]:
    """The shares of all protocols' files, and the volumes that the kernel serves."""
    return (*(share for one in SERVING.values() for share in one.configured()), *sessions.read_served())


def agreed_facts(datasets: Iterable[Dataset] | None = None) -> Facts:
    """What files are rendered from: the accounts, and of the datasets (all there are, if none are given) those that
    somebody here agreed to share. One that inherits its setting goes with the dataset that has it. Raises Failed."""
    return only_agreed(
        Facts(
            datasets=status.read_datasets() if datasets is None else tuple(datasets),
            accounts=accounts.read_accounts(),
            groups=accounts.read_groups(),
            smb_policy=smb_policy(),
        ),
        approved.read_approved(),
    )


def smb_policy() -> SmbPolicy:
    """How SMB is protected: what Samba's own file says where it serves something, else what
    was chosen for the first share.

    A power cut may leave the two apart; a file that was changed by hand is not Larder's
    word, so then the choice counts.
    """
    one = SERVING["smb"]
    if one.configured() and not one.owned.drifted() and (found := smb.policy_in(one.owned.path)):
        return found
    return smb_security.read_security()


def protocol_named(key: str) -> Serving | None:
    """The protocol of that name; None where there is none."""
    return next((one for one in SERVING.values() if one.name == key), None)


def only_agreed(facts: Facts, wanted: frozenset[int]) -> Facts:
    sources = {one.name for one in facts.datasets if one.guid in wanted}
    kept = tuple(
        one
        for one in facts.datasets
        if (one.share_from in sources if one.share_source == "inherited" else one.guid in wanted)
    )
    return replace(facts, datasets=kept)


def publish_shares(
    facts: Facts,
    protocols: Iterable[str] = (*PROTOCOLS, ISCSI),
    *,
    insist: bool = True,
    changed: Collection[str] | None = None,
    over: str = "",
    note: Callable[[str], None] = lambda _text: None,
) -> None:
    """Write these protocols' files from the facts, reload the daemons, close former shares and announce the rest.
    Volumes have no file: the kernel's own tree is changed.

    Raises Refused on a hand edit, Failed; a file that its daemon does not serve as it says is put back before that, and
    with ``insist`` so are the files of the protocols before it. ``over`` is the fingerprint of a hand edit that may be
    written over; it is put back, too, where what replaces it fails. Without ``insist`` a share that is not served is
    only noted: what matters then is that others are no longer. ``changed`` are the places of the folders that this is
    about: of all others, too, it is only noted. So is a share whose clients nobody knows by name now, unless it is
    among the changed: the computer may be switched off.
    """
    serve_protocols(facts, protocols, insist=insist, changed=changed, over=over, note=note)
    tell_network(note, facts)


def serve_protocols(
    facts: Facts,
    protocols: Iterable[str],
    *,
    insist: bool,
    changed: Collection[str] | None = None,
    over: str = "",
    note: Callable[[str], None],
) -> None:
    """As ``publish_shares``, but nothing is announced."""
    written: list[Serving] = []  # to be put back where something fails
    try:
        for protocol, one in SERVING.items():
            if protocol not in protocols:
                continue
            before, wanted = one.configured(), one.shares(facts)
            if not before and not wanted and not (over and one.owned.fingerprint() == over):
                continue
            one.owned.write(one.render(facts), over=over)
            written.append(one)
            one.take_up(wanted)
            insist_on(one, wanted, changed, insist=insist, note=note)
            if not insist:
                # Nothing else is put back then: a user who was removed must stay removed where another protocol fails.
                written.clear()
            one.close(share for share in before if share not in wanted)
            if protocol == "smb" and smb_security.read_security() != facts.smb_policy:
                smb_security.store_security(facts.smb_policy)
        if ISCSI in protocols:
            serve.serve_volumes(facts, insist=insist, changed=changed, note=note)
    except LarderError:
        for one in reversed(written):
            serve_previous(one, note)
        raise


def serve_previous(one: Serving, note: Callable[[str], None]) -> None:
    """Put the previous version of a protocol's file back. What is reported is why, so trouble here is only noted."""
    one.owned.roll_back()
    try:
        one.take_up(one.configured())
    except LarderError as error:
        note(explain_error(error))


def put_volumes_back(note: Callable[[str], None]) -> None:
    """Have the kernel serve only the volumes that are agreed to now, after serving others failed: it has no former file
    to go back to. What is reported is why, so trouble here is only noted."""
    try:
        publish_shares(agreed_facts(), [ISCSI], insist=False, note=note)
    except LarderError as error:
        note(explain_error(error))


def insist_on(
    one: Serving,
    wanted: tuple[Share, ...],
    changed: Collection[str] | None,
    *,
    insist: bool,
    note: Callable[[str], None],
) -> None:
    """Wait until the daemon serves what it has to. Raises Failed with the reason where it does not."""
    minded = tuple(share for share in wanted if changed is None or share.path in changed)
    missing = missing_in_time(one, minded)
    excused = {share for share in missing if not insist or (changed is None and one.why_not({share.path}))}
    if left := missing - excused:
        raise Failed(one.why_not({share.path for share in left}) or not_served(left))
    served = one.served() if len(minded) < len(wanted) else frozenset()
    excused |= {share for share in wanted if share not in minded and (share.name, share.path) not in served}
    if excused:
        note(one.why_not({share.path for share in excused}) or not_served(excused))


def not_served(shares: Iterable[Share]) -> str:
    return Message(
        "{names} is in the settings and is not served", names=", ".join(sorted(share.name for share in shares))
    )


def tell_network(note: Callable[[str], None], facts: Facts | None = None) -> None:
    """Announce what is served and is there now. Trouble is only noted: every share can be reached by its address."""
    try:
        discovery.announce_shares((facts or agreed_facts()).datasets)
    except LarderError as error:
        note(Message("The share could not be announced in the network: {reason}", reason=explain_error(error)))


def republish_quietly(work: Work) -> None:
    """Have served what can be served now, after folders were opened or mounted. They are open whatever becomes of their
    shares, so trouble is only noted, and one protocol's trouble stops no other."""
    try:
        facts = agreed_facts()
    except LarderError as error:
        work.note(may_be_off(error))
        return
    for protocol in (*PROTOCOLS, ISCSI):
        try:
            serve_protocols(facts, [protocol], insist=False, note=work.note)
        except LarderError as error:
            work.note(may_be_off(error))
    tell_network(work.note, facts)


def may_be_off(error: LarderError) -> str:
    return Message("Its shares may not be on: {explain_error}", explain_error=explain_error(error))


def missing_in_time(one: Serving, wanted: tuple[Share, ...]) -> set[Share]:
    """What the daemon does not serve, after giving it time to take up new settings."""
    until = time.monotonic() + SECONDS_TO_TAKE_UP
    missing = set(wanted)
    while missing:
        served = one.served()
        missing = {share for share in missing if (share.name, share.path) not in served}
        if not missing or time.monotonic() > until:
            break
        time.sleep(0.25)
    return missing
