"""Pairing two Larders by a code: the proofs, the code's life, who is let in, and the operations of both sides."""

from __future__ import annotations

import os
import pwd
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from appliance import command
from appliance.backups.pairing import codes, pair_box, pending, receivers
from appliance.backups.pairing.codes import Acceptance, Offer
from appliance.backups.pairing.pair_box import PairBox
from appliance.backups.pairing.receive_copies import ReceiveCopies
from appliance.backups.pairing.remove_receiver import RemoveReceiver
from appliance.backups.pairing.requests import AcceptPairing, MakePairingCode, WithdrawPairingCode
from appliance.backups.remote import settings
from appliance.backups.remote.answers import Hello
from appliance.errors import Failed, Refused
from appliance.facts.box import Facts, Pool
from appliance.facts.datasets import Property
from appliance.facts.kept_copies import Keep
from appliance.facts.receiver import Receiver
from appliance.operation import checked_plan
from appliance.recovery.phrase import ALPHABET
from appliance.system import paths
from tests.reasons import expect_refusal
from tests.unit.backups.test_remote_connection import KEY
from tests.unit.made import box, dataset
from tests.unit.pools.test_create import Working

CODE = codes.spell_digits("7KQ2MT0B8R0XHVN4J3P")
OTHER_CODE = codes.spell_digits("0" * codes.DIGITS)
PUBLIC = f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{'A' * 43}"
FOREIGN = f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{'B' * 43}"
MADE = datetime(2026, 11, 24, tzinfo=UTC)
RECEIVER = Receiver("0badcafe", "safe/backups/attic", 77, MADE)
SAFE = (Pool("safe", 9, "ONLINE"),)
HOME = dataset("safe/backups", guid=8, copy_of='{"guid":0,"raw":false}')
FACTS = box(pools=SAFE, datasets=(dataset("safe", guid=7), HOME))
RECEIVE = ReceiveCopies(receiver="0badcafe", pool="safe", name="attic")
FOLDER = dataset("safe/backups/attic", guid=77, properties={"larder:receives": Property("yes", "local")})


class Typed(Working):
    """A Work whose secret is this code."""

    def __init__(self, code: str = CODE) -> None:
        super().__init__()
        self.code = code

    def secret(self) -> str:
        return self.code


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    at = [1000.0]
    monkeypatch.setattr(pending, "now", lambda: at[0])
    return at


@pytest.fixture
def here(folders: Path, monkeypatch: pytest.MonkeyPatch, clock: list[float]) -> Path:
    """A receiving box with an ssh server and one pairing that nobody has used."""
    monkeypatch.setattr(receivers, "read_server", lambda: (2222, KEY))
    receivers.write_receiver(RECEIVER)
    return folders


def offer(code: str = CODE, public: str = PUBLIC) -> Offer:
    return codes.make_offer(codes.key_of(code), public, "cellar")


def shown() -> str:
    # a dictionary, by its contract
    return str(MakePairingCode(receiver="0badcafe").read()["code"])  # type: ignore[index]


def authorized() -> list[str]:
    return [line for line in receivers.keys_file().read_text().splitlines() if not line.startswith("#")]


# --- codes ----------------------------------------------------------------------------------------------------------
def test_code_has_95_bits_and_is_never_the_same():
    made = {codes.make_code() for _try in range(200)}
    assert len(made) == 200 and all(len(code.replace("-", "")) == 20 for code in made)
    assert len(ALPHABET) ** codes.DIGITS >= 2**95


@pytest.mark.parametrize(
    "typed", [CODE.lower(), CODE.replace("-", ""), f" {CODE} ", CODE.replace("0", "o"), CODE.replace("-", " ")]
)
def test_code_is_read_as_people_type_it(typed):
    assert codes.spell_code(typed) == CODE


@pytest.mark.parametrize("typed", ["", CODE[:-1], f"{CODE}A", "U" * 20, "é" * 20, "7" * 5000])
def test_what_is_no_code_is_refused(typed):
    with expect_refusal("pairing-code-incomplete"):
        codes.spell_code(typed)


def test_most_typing_mistakes_are_found_before_anything_is_sent():
    wrong = [f"{digit}{CODE[1:]}" for digit in ALPHABET if digit != CODE[0]]
    found = 0
    for typed in wrong:
        try:
            codes.read_code(typed)
        except Refused:
            found += 1
    assert found >= len(wrong) - 4


@given(
    field=st.sampled_from(["public_key", "name", "nonce", "host_key", "user", "root", "port"]), by=st.integers(1, 1000)
)
def test_whatever_somebody_in_between_changes_is_noticed(field, by):
    key = codes.key_of(CODE)
    made = offer()
    answer = codes.make_acceptance(key, made, host_key=KEY, user="larder-receive", root="safe/backups/attic", port=22)
    codes.check_acceptance(key, made, answer, "attic.lan")
    if field in {"public_key", "name", "nonce"}:
        changed = {"public_key": FOREIGN, "name": f"x{by}", "nonce": f"{by:032x}"}[field]
        other = msgspec.structs.replace(made, **{field: changed})
        assert not codes.is_proved(key, other)
        with pytest.raises(Failed):
            codes.check_acceptance(key, other, answer, "attic.lan")
    else:
        value = 22 + by if field == "port" else f"{getattr(answer, field)}{by}"
        with pytest.raises(Failed, match="did not prove"):
            codes.check_acceptance(key, made, msgspec.structs.replace(answer, **{field: value}), "attic.lan")


def test_proof_of_one_side_is_none_of_the_other():
    key, made = codes.key_of(CODE), offer()
    reflected = Acceptance(host_key=KEY, user="u", root="r", port=22, proof=made.proof)
    with pytest.raises(Failed, match="did not prove"):
        codes.check_acceptance(key, made, reflected, "attic.lan")
    assert not codes.is_proved(codes.key_of(OTHER_CODE), made)


def test_answer_with_a_line_break_proves_nothing():
    key, made = codes.key_of(CODE), offer()
    answer = Acceptance(host_key=f"{KEY}\nx", user="u", root="r", port=22, proof="é")
    with pytest.raises(Failed, match="did not prove"):
        codes.check_acceptance(key, made, answer, "attic.lan")


# --- the code's life ------------------------------------------------------------------------------------------------
def test_right_code_lets_one_key_in_and_works_once(here):
    code = shown()
    made = offer(code)
    answer = AcceptPairing(offer=made).read()
    codes.check_acceptance(codes.key_of(code), made, answer, "attic.lan")
    assert (answer.host_key, answer.user, answer.root, answer.port) == (KEY, "larder-receive", RECEIVER.root, 2222)
    assert authorized() == [
        f'restrict,command="/usr/local/lib/larder/receive-copies 0badcafe safe/backups/attic" {PUBLIC} larder-0badcafe'
    ]
    for again in (made, offer(code, FOREIGN)):  # said again, and by somebody else who has the code
        with expect_refusal("pairing-not-open"):
            AcceptPairing(offer=again).read()
    (found,) = receivers.read_receivers()
    assert (found.sender, found.public_key, found.code_until) == ("cellar", PUBLIC, None)


def test_nobody_is_let_in_while_no_code_is_shown(here):
    with expect_refusal("pairing-not-open"):
        AcceptPairing(offer=offer()).read()
    assert authorized() == []


def test_five_wrong_codes_end_the_right_one(here):
    code = shown()
    for _try in range(pending.TRIES):
        with expect_refusal("pairing-code-wrong"):
            AcceptPairing(offer=offer(OTHER_CODE)).read()
    with expect_refusal("pairing-not-open"):
        AcceptPairing(offer=offer(code)).read()
    assert authorized() == [] and not pending.file().exists()


def test_four_wrong_codes_do_not(here):
    code = shown()
    for _try in range(pending.TRIES - 1):
        with expect_refusal("pairing-code-wrong"):
            AcceptPairing(offer=offer(OTHER_CODE)).read()
    AcceptPairing(offer=offer(code)).read()


def test_try_counts_also_where_its_process_is_ended(here, monkeypatch):
    shown()

    def end(*_words: object) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(codes, "is_proved", end)
    for _try in range(pending.TRIES):
        with pytest.raises(KeyboardInterrupt):
            AcceptPairing(offer=offer()).read()
    monkeypatch.undo()
    assert msgspec.json.decode((here / "run" / "pairing-code").read_bytes())["tries"] == 0


def test_code_is_over_after_ten_minutes_by_a_clock_that_nobody_sets(here, clock):
    code = shown()
    clock[0] += pending.SECONDS_VALID
    with expect_refusal("pairing-not-open"):
        AcceptPairing(offer=offer(code)).read()
    assert not pending.file().exists()


def test_newer_code_and_a_cancelled_one_end_the_earlier(here):
    first, second = shown(), shown()
    with expect_refusal("pairing-code-wrong"):
        AcceptPairing(offer=offer(first)).read()
    WithdrawPairingCode(receiver="0badcafe").read()
    with expect_refusal("pairing-not-open"):
        AcceptPairing(offer=offer(second)).read()
    assert receivers.find_receiver("0badcafe").code_until is None


def test_cancelling_one_pairing_leaves_the_code_of_another(here):
    receivers.write_receiver(replace(RECEIVER, id="1badcafe", root="safe/backups/other"))
    code = shown()
    WithdrawPairingCode(receiver="1badcafe").read()
    AcceptPairing(offer=offer(code)).read()
    assert receivers.find_receiver("0badcafe").public_key


def test_box_that_is_paired_gets_no_further_code(here):
    AcceptPairing(offer=offer(shown())).read()
    with expect_refusal("pairing-done"):
        MakePairingCode(receiver="0badcafe").read()


def test_code_is_in_no_file_and_its_key_in_one_of_roots(here):
    code = shown()
    files = [path for path in here.rglob("*") if path.is_file()]
    assert pending.file() in files
    for path in files:
        assert code not in path.read_text(errors="replace") and code.replace("-", "") not in path.read_text(
            errors="replace"
        )
        if path != pending.file():
            assert codes.key_of(code).hex() not in path.read_text(errors="replace")
    assert pending.file().stat().st_mode & 0o777 == 0o600


def test_wrong_proofs_are_compared_in_constant_time():
    assert "compare_digest" in codes.is_proved.__code__.co_names


# --- who is let in --------------------------------------------------------------------------------------------------
def test_files_can_be_read_by_sshd_and_changed_by_root_alone(here):
    AcceptPairing(offer=offer(shown())).read()
    assert paths.RECEIVE.stat().st_mode & 0o777 == receivers.keys_file().parent.stat().st_mode & 0o777 == 0o755
    assert receivers.keys_file().stat().st_mode & 0o777 == 0o644


def test_file_that_was_tampered_with_lets_nobody_in(here):
    (paths.RECEIVE / "1badcafe.json").write_bytes(receivers.receiver_file("0badcafe").read_bytes())
    (paths.RECEIVE / "2badcafe.json").write_text("{")
    assert [one.id for one in receivers.read_receivers()] == ["0badcafe"]


def test_removed_box_is_not_let_in_and_its_processes_are_ended(here, monkeypatch, tmp_path):
    AcceptPairing(offer=offer(shown())).read()
    other = replace(RECEIVER, id="1badcafe", root="safe/backups/other", public_key=FOREIGN)
    receivers.write_receiver(other)
    processes = tmp_path / "proc"
    words = {
        "11": "/bin/sh\0larder-peer\0safe/backups/attic\0",
        "12": "zfs\0receive\0-u\0safe/backups/attic/photos\0",
        "13": "zfs\0receive\0-u\0safe/backups/other/photos\0",
        "14": "/bin/sh\0/usr/local/lib/larder/receive-copies\x000badcafe\0safe/backups/attic\0",
        "15": "zfs\0send\0-w\0-t\x001-c0ffee\0",
        "16": "zfs\0send\0-w\0-t\x001-c0ffee\0",
        "self": "",
    }
    for pid, line in words.items():
        (processes / pid).mkdir(parents=True)
        (processes / pid / "cmdline").write_text(line)
    for pid, pairing in (("15", "0badcafe"), ("16", "1badcafe")):
        (processes / pid / "environ").write_text(f"HOME=/\0LARDER_PAIRING={pairing}\0")
    killed: list[int] = []

    def kill(pid: int, _signal: int) -> None:
        assert not receivers.receiver_file("0badcafe").exists()  # whoever looks again is refused by now
        killed.append(pid)
        for name in ("cmdline", "environ"):
            (processes / str(pid) / name).write_text("")

    monkeypatch.setattr(receivers, "PROCESSES", processes)
    monkeypatch.setattr(pwd, "getpwnam", lambda _name: type("Entry", (), {"pw_uid": tmp_path.stat().st_uid}))
    monkeypatch.setattr(os, "kill", kill)
    monkeypatch.setattr(time, "sleep", lambda _seconds: None)
    plan = checked_plan(RemoveReceiver(receiver="0badcafe"), replace(FACTS, receivers=receivers.read_receivers()))
    assert "The copies in safe/backups/attic stay" in plan.summary
    plan.steps[0].run(Working())
    assert sorted(killed) == [11, 12, 14, 15]
    assert len(authorized()) == 1 and FOREIGN in authorized()[0]
    # Its folder is not here: there are no rights to take back.
    assert [step.name for step in plan.steps] == ["end", "forget"]


def test_process_that_does_not_end_is_said(here, monkeypatch):
    monkeypatch.setattr(receivers, "SECONDS_TO_END", 0.0)
    monkeypatch.setattr(receivers, "processes_of", lambda _receiver: iter([11]))
    monkeypatch.setattr(os, "kill", lambda _pid, _signal: None)
    monkeypatch.setattr(time, "sleep", lambda _seconds: None)
    with pytest.raises(Failed, match="no longer let in, but"):
        receivers.end_access(RECEIVER)
    assert not receivers.receiver_file("0badcafe").exists()


def known_here() -> Facts:
    """What the agent reads afresh for each job."""
    return replace(FACTS, receivers=receivers.read_known(), datasets=(*FACTS.datasets, FOLDER))


def test_removal_of_a_box_that_did_not_end_can_be_repeated(here, monkeypatch, commands):
    AcceptPairing(offer=offer(shown())).read()
    at_work = [11]
    monkeypatch.setattr(receivers, "SECONDS_TO_END", 0.0)
    monkeypatch.setattr(receivers, "processes_of", lambda _receiver: iter(at_work))
    monkeypatch.setattr(os, "kill", lambda _pid, _signal: None)
    monkeypatch.setattr(time, "sleep", lambda _seconds: None)
    remove = RemoveReceiver(receiver="0badcafe")
    with pytest.raises(Failed, match="Choose Remove again"):
        checked_plan(remove, known_here()).steps[0].run(Working())
    assert authorized() == [] and not receivers.receiver_file("0badcafe").exists()
    with expect_refusal("receiver-missing"):
        MakePairingCode(receiver="0badcafe").read()
    assert [one.id for one in receivers.read_visits()] == ["0badcafe"]  # the page still shows it, to remove it again
    at_work.clear()
    steps = checked_plan(remove, known_here()).steps
    assert [step.name for step in steps] == ["end", "rights", "forget"]
    steps[0].run(Working())
    assert not remove.probe("end", known_here())  # killed here, the rights are still to be taken back
    for step in checked_plan(remove, known_here()).steps:
        step.run(Working())
    assert ["zfs", "unallow", "-u", "larder-receive", "safe/backups/attic"] in commands.ran
    assert receivers.read_known() == ()


def test_folder_of_a_box_that_is_being_removed_is_not_given_to_another(here, monkeypatch):
    monkeypatch.setattr(receivers, "processes_of", lambda _receiver: iter([]))
    receivers.end_access(RECEIVER)
    with expect_refusal("receiver-root-used"):
        checked_plan(replace(RECEIVE, receiver="2badcafe"), known_here())


def test_removing_takes_back_the_rights_and_withdraws_the_code(here, commands):
    code = shown()
    facts = replace(FACTS, receivers=receivers.read_receivers(), datasets=(*FACTS.datasets, FOLDER))
    for step in checked_plan(RemoveReceiver(receiver="0badcafe"), facts).steps:
        step.run(Working())
    assert commands.ran == [["zfs", "unallow", "-u", "larder-receive", "safe/backups/attic"]]
    with expect_refusal("pairing-not-open"):
        AcceptPairing(offer=offer(code)).read()
    with expect_refusal("receiver-missing"):
        checked_plan(RemoveReceiver(receiver="0badcafe"), FACTS)


def test_server_is_read_as_sshd_says(monkeypatch, tmp_path):
    for kind in ("rsa", "ed25519"):
        (tmp_path / f"{kind}.pub").write_text(f"{KEY if kind == 'ed25519' else 'ssh-dss x'} root@box\n")
    said = (
        f"port 2022\nport 22\nhostkey {tmp_path}/rsa\nhostkey {tmp_path}/ed25519\nauthorizedkeysfile "
        ".ssh/authorized_keys .ssh/authorized_keys2\n"
    )
    monkeypatch.setattr(command, "run", lambda argv, **_more: command.Result(tuple(argv), 0, said, "", 0.0))
    assert receivers.read_server() == (2022, KEY)


def test_server_that_looks_for_keys_elsewhere_is_refused(monkeypatch):
    said = "port 22\nauthorizedkeysfile /etc/ssh/keys/%u\n"
    monkeypatch.setattr(command, "run", lambda argv, **_more: command.Result(tuple(argv), 0, said, "", 0.0))
    with pytest.raises(Failed, match="looks for keys elsewhere"):
        receivers.read_server()


def test_box_without_an_ssh_server_says_what_to_install(monkeypatch):
    def missing(*_words: object, **_more: object) -> None:
        raise command.CommandMissing("sshd is not installed on this system")

    monkeypatch.setattr(command, "run", missing)
    with pytest.raises(Failed, match="no ssh server") as caught:
        receivers.read_server()
    assert "openssh-server" in str(caught.value)


# --- the folder -----------------------------------------------------------------------------------------------------
def test_folder_is_made_out_of_use_and_with_rights_that_destroy_nothing():
    plan = checked_plan(RECEIVE, FACTS)
    assert [step.name for step in plan.steps] == ["server", "folder", "rights", "note"]
    made = plan.steps[1].command_text
    for word in (
        "canmount=off",
        "mountpoint=none",
        "readonly=on",
        "setuid=off",
        "devices=off",
        "exec=off",
        "larder:receives=yes",
    ):
        assert word in made
    assert (
        plan.steps[2].command_text
        == "zfs allow -u larder-receive create,mount,receive:append,userprop,send safe/backups/attic"
    )
    assert any("can fill the pool" in warning for warning in plan.warnings)


def test_limit_is_a_quota_and_home_is_made_where_it_is_missing():
    limited = ReceiveCopies(receiver="0badcafe", pool="safe", name="attic", limit=2**40)
    plan = checked_plan(limited, replace(FACTS, datasets=(dataset("safe", guid=7),)))
    assert [step.name for step in plan.steps] == ["server", "home", "folder", "rights", "note"]
    assert f"quota={2**40}" in plan.steps[2].command_text
    assert not any("can fill the pool" in warning for warning in plan.warnings)
    with expect_refusal("limit-too-small"):
        ReceiveCopies(receiver="0badcafe", pool="safe", name="attic", limit=5)


def test_folder_that_is_used_again_says_what_goes():
    kept = ReceiveCopies(receiver="0badcafe", pool="safe", name="attic", keep=Keep(daily=3))
    for operation, known, goes in ((kept, (FOLDER,), True), (kept, (), False), (RECEIVE, (FOLDER,), False)):
        plan = checked_plan(operation, replace(FACTS, datasets=(*FACTS.datasets, *known)))
        assert any("no longer kept by this" in warning for warning in plan.warnings) is goes
        assert ("3 daily" in plan.summary) is (operation is kept)


def test_folder_of_a_removed_pairing_is_used_again_and_nothing_else_is():
    again = checked_plan(RECEIVE, replace(FACTS, datasets=(*FACTS.datasets, FOLDER)))
    assert "The copies that are in it stay" in again.summary
    assert (
        again.steps[1].command_text.startswith("zfs set canmount=off") and "quota=none" in again.steps[1].command_text
    )
    foreign = replace(FOLDER, properties={"larder:receives": Property("yes", "received")})
    for taken in (replace(FOLDER, properties={}), foreign):
        with expect_refusal("dataset-exists"):
            checked_plan(RECEIVE, replace(FACTS, datasets=(*FACTS.datasets, taken)))
    with expect_refusal("receiver-root-used"):
        checked_plan(
            ReceiveCopies(receiver="1badcafe", pool="safe", name="attic"),
            replace(FACTS, datasets=(*FACTS.datasets, FOLDER), receivers=(RECEIVER,)),
        )


def test_what_cannot_receive_is_refused():
    with expect_refusal("pool-missing"):
        checked_plan(ReceiveCopies(receiver="0badcafe", pool="tank", name="attic"), FACTS)
    with expect_refusal("pool-stopped"):
        checked_plan(RECEIVE, replace(FACTS, pools=(Pool("safe", 9, "SUSPENDED"),)))
    with expect_refusal("dataset-locked"):
        checked_plan(RECEIVE, replace(FACTS, datasets=(dataset("safe", guid=7, key_status="unavailable"), HOME)))
    many = tuple(replace(RECEIVER, id=f"{number:08x}", root=f"safe/backups/{number}") for number in range(16))
    with expect_refusal("receivers-too-many"):
        checked_plan(RECEIVE, replace(FACTS, receivers=many))


READ_BACK = "\n".join(
    f"{key}\t{value}"
    for key, value in {
        "guid": "77",
        "mountpoint": "none",
        "readonly": "on",
        "setuid": "off",
        "devices": "off",
        "exec": "off",
        "larder:receives": "yes",
    }.items()
)
ALLOWED = "---- Permissions on safe/backups/attic ---\nLocal+Descendent permissions:\n\tuser larder-receive {}\n"


@pytest.mark.parametrize(
    ("said", "rights", "problem"),
    [
        (READ_BACK, "create,mount,receive:append,userprop,send", ""),
        (READ_BACK.replace("readonly\ton", "readonly\toff"), "create,mount,receive:append,userprop,send", "readonly"),
        (READ_BACK, "create,mount,userprop", "receive:append"),
        (READ_BACK, "create,destroy,mount,receive:append,userprop,send", "could destroy"),
        (READ_BACK, "create,mount,receive,receive:append,userprop,send", "could destroy"),
    ],
)
def test_pairing_is_noted_only_where_everything_was_read_back(folders, monkeypatch, said, rights, problem):
    answers = {"get": said, "allow": ALLOWED.format(rights)}
    monkeypatch.setattr(command, "run", lambda argv, **_more: command.Result(tuple(argv), 0, answers[argv[1]], "", 0.0))
    note = checked_plan(RECEIVE, FACTS).steps[-1]
    if problem:
        with pytest.raises(Failed, match=problem):
            note.run(Working())
        assert receivers.read_receivers() == ()
    else:
        note.run(Working())
        assert [(one.id, one.root, one.guid) for one in receivers.read_receivers()] == [("0badcafe", FOLDER.name, 77)]


def test_interrupted_steps_are_known_by_what_is_there():
    done = replace(FACTS, datasets=(*FACTS.datasets, FOLDER), receivers=(RECEIVER,))
    assert all(RECEIVE.probe(step, done) for step in ("server", "home", "folder", "rights", "note"))
    assert not any(RECEIVE.probe(step, FACTS) for step in ("folder", "rights", "note"))
    assert "Nothing was created" in RECEIVE.recovery_hint("folder", FACTS)
    gone = RemoveReceiver(receiver="0badcafe")
    for step in ("end", "rights", "forget"):  # it is forgotten last
        assert gone.probe(step, FACTS) and not gone.probe(step, done)


# --- the side that sends --------------------------------------------------------------------------------------------
PAIR = PairBox(remote="1badcafe", host="attic.lan")


class Network:
    """Stands in for the process that sends the offer: hands it to the receiving box, or answers as told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folders: Path) -> None:
        self.argv: list[str] = []
        self.said: tuple[int, str, str] | None = None
        self.change: Any = lambda answer: answer
        monkeypatch.setattr(settings, "ssh_group", lambda: folders.stat().st_gid)
        self.run_really = command.run
        monkeypatch.setattr(command, "run", self.run)

    def run(self, argv: list[str], *, given: bytes | None = None, **more: Any) -> command.Result:
        if given is None:
            return self.run_really(argv, **more)
        self.argv = list(argv)
        if self.said is None:
            answer = self.change(AcceptPairing(offer=msgspec.json.decode(given, type=Offer)).read())
            self.said = (0, f"200\n{msgspec.json.encode(answer).decode()}", "")
        status, out, complaint = self.said
        return command.Result(tuple(argv), status, out, complaint, 0.0)


@pytest.fixture
def network(here: Path, monkeypatch: pytest.MonkeyPatch) -> Network:
    return Network(monkeypatch, here)


def test_paired_box_is_pinned_and_its_host_key_is_the_one_that_was_proved(network):
    work = Typed(shown())
    checked_plan(PAIR, FACTS).steps[0].run(work)
    (found,) = settings.read_remotes()
    assert (found.host, found.port, found.user, found.root) == ("attic.lan", 2222, "larder-receive", RECEIVER.root)
    assert found.paired and found.host_key == KEY and found.public_key in authorized()[0]
    assert (paths.SSH / "1badcafe.hosts").read_text() == f"larder-1badcafe {KEY}\n"
    assert network.argv[0] == "setpriv" and network.argv[-3:] == ["attic.lan", "443", "/backups/pair/"]
    assert not any(work.code in word or work.code.replace("-", "") in word for word in (*network.argv, *work.notes))


def test_answer_of_somebody_in_between_sets_nothing_up(network):
    network.change = lambda answer: msgspec.structs.replace(answer, host_key=f"ssh-ed25519 {'Q' * 68}")
    with pytest.raises(Failed, match="did not prove"):
        PAIR.pair(Typed(shown()))
    assert settings.read_remotes() == () and list(paths.SSH.iterdir()) == []


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ((0, "403\n{}", ""), "does not accept the code"),
        ((0, "404\n{}", ""), "shows no code now"),
        ((0, "429\n{}", ""), "too many tries"),
        ((0, "302\n<html>", ""), "does not answer as a Larder does"),
        ((0, "200\n<html>", ""), "does not answer as a Larder does"),
        ((0, "200\n" + "[" * 4000, ""), "does not answer as a Larder does"),
        ((0, "", ""), "does not answer as a Larder does"),
        ((1, "", "Connection refused"), "Check the address"),
        ((1, "", "unknown name"), "no computer with that name"),
        ((1, "", "timed out"), "switched on"),
    ],
)
def test_every_other_answer_is_explained_and_leaves_nothing(network, said, words):
    network.said = said
    with pytest.raises((Failed, Refused), match=words):
        PAIR.pair(Typed())
    assert settings.read_remotes() == () and list(paths.SSH.iterdir()) == []


@pytest.mark.parametrize(
    ("field", "value"),
    [("user", "-oProxyCommand=id"), ("root", "../tank"), ("root", "a b"), ("port", 0), ("host_key", "ssh-dss AAAA")],
)
def test_box_that_has_the_code_can_still_name_nothing_that_cannot_be(network, field, value):
    code = shown()

    def hostile(answer: Acceptance) -> Acceptance:
        changed = msgspec.structs.replace(answer, **{field: value})
        made = msgspec.json.decode(msgspec.json.encode(sent[0]), type=Offer)
        return msgspec.structs.replace(
            changed, proof=codes.proof_of(codes.key_of(code), "receiver", (*made.said, *changed.said))
        )

    sent: list[Offer] = []
    network.change = hostile
    accept = AcceptPairing.read

    def noted(self: AcceptPairing) -> Acceptance:
        sent.append(self.offer)
        return accept(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AcceptPairing, "read", noted)
        with pytest.raises(Failed):
            PAIR.pair(Typed(code))
    assert settings.read_remotes() == () and list(paths.SSH.iterdir()) == []


def test_mistyped_code_makes_no_key_and_asks_nobody(network):
    with expect_refusal("pairing-code-incomplete"):
        PAIR.pair(Typed("x"))
    assert network.argv == [] and not paths.SSH.exists()


def test_paired_box_is_tested_like_any_other(monkeypatch):
    remote = pair_box.remote_of(
        "1badcafe", "attic.lan", PUBLIC, Acceptance(host_key=KEY, user="u", root="safe/x", port=22, proof="")
    )
    monkeypatch.setattr(pair_box, "try_remote", lambda _key: (remote, Hello(user="u", version=(2, 3, 9))))
    work = Typed()
    PAIR.test(work)
    assert "ZFS 2.3.9" in work.notes[0]


def test_pairing_is_known_by_what_is_there_after_an_interruption():
    assert not PAIR.probe("pair", FACTS)
    assert "remove it there" in PAIR.recovery_hint("pair", FACTS)
    with expect_refusal("port-out-of-range"):
        PairBox(remote="1badcafe", host="attic.lan", port=0)


@pytest.mark.parametrize(
    ("name", "told"), [("attic", "attic"), ("tür", "t-r"), ("-x", "x"), ("…", "larder"), ("a" * 99, "a" * 63)]
)
def test_own_name_is_one_that_the_other_side_takes(monkeypatch, name, told):
    monkeypatch.setattr(pair_box, "read_host_name", lambda: name)
    assert pair_box.own_name() == told and codes.NAME.fullmatch(told)
