from __future__ import annotations

import json
import stat
import time

import pytest

from appliance.agent import proof, protocol
from appliance.errors import Refused
from appliance.operation import Operation, as_json
from appliance.pools.export_destroy import DestroyPool
from appliance.system import paths
from tests.unit.made import JOB, OTHER_JOB

pytestmark = pytest.mark.usefixtures("folders")

PASSWORD, OTHER = "correct horse battery", "staple horse battery"
TANK, POND = DestroyPool(pool="tank", guid=1), DestroyPool(pool="pond", guid=2)


@pytest.fixture(autouse=True)
def cheap(monkeypatch):
    monkeypatch.setattr(proof, "COST", {"n": 2, "r": 8, "p": 1})


def refused(call, *words) -> str:
    with pytest.raises(Refused) as caught:
        call(*words)
    return str(caught.value)


def test_only_a_salted_hash_is_kept_and_only_root_reads_it():
    proof.store_hash(PASSWORD)
    text = proof.hash_file().read_text()
    assert PASSWORD not in text
    assert stat.S_IMODE(proof.hash_file().stat().st_mode) == 0o600
    proof.remove_hash()
    proof.store_hash(PASSWORD)
    assert proof.hash_file().read_text() != text  # another salt


def test_the_first_password_is_kept_and_a_second_only_with_the_old_one():
    proof.store_hash(PASSWORD)
    assert "already" in refused(proof.store_hash, OTHER)
    assert "not the administrator's" in refused(proof.store_hash, OTHER, OTHER)
    proof.check(PASSWORD)
    proof.store_hash(OTHER, PASSWORD)
    proof.check(OTHER)
    refused(proof.check, PASSWORD)


def test_a_change_that_got_no_further_than_the_agent_can_be_made_again():
    """The pages know the old one still, so they send it again."""
    proof.store_hash(PASSWORD)
    for _again in range(proof.FREE_TRIES + 1):
        proof.store_hash(OTHER, PASSWORD)
    proof.check(OTHER)
    refused(proof.check, PASSWORD)


def test_each_password_of_a_change_counts_as_a_try():
    """A change is no way to guess two for the price of one."""
    proof.store_hash(PASSWORD)
    refused(proof.store_hash, "guess", "another guess")
    assert proof.tries()[0] == 2
    refused(proof.store_hash, "guess", "guess")
    assert proof.tries()[0] == 3
    proof.check(PASSWORD)


@pytest.mark.parametrize("password", ["", "x" * 5000])
def test_what_is_no_password_is_not_kept(password):
    refused(proof.store_hash, password)
    assert not proof.is_set()


def test_without_a_password_nothing_is_proved():
    assert "No password is known" in refused(proof.check, "")
    assert "No password is known" in refused(proof.grant, JOB, TANK, "d", PASSWORD)
    assert not proof.redeem(JOB, TANK, "d")


def test_wrong_passwords_are_throttled_for_longer_each_time_and_even_the_right_one_waits(monkeypatch):
    clock = [1000.0]
    monkeypatch.setattr(time, "time", lambda: clock[0])
    proof.store_hash(PASSWORD)
    for _try in range(proof.FREE_TRIES):
        assert "not the administrator's" in refused(proof.check, OTHER)
    assert "too often" in refused(proof.check, PASSWORD)
    delays = []
    for _try in range(8):
        delays.append(proof.tries()[1] - clock[0])
        clock[0] = proof.tries()[1]
        assert "not the administrator's" in refused(proof.check, OTHER)
    assert delays == [5, 10, 20, 40, 80, 160, 300, 300]
    clock[0] += proof.LONGEST_DELAY
    proof.check(PASSWORD)
    assert proof.tries() == (0, 0.0)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "1 second"), (1.0, "2 seconds"), (89.9, "90 seconds"), (90, "2 minutes"), (300, "6 minutes")],
)
def test_wait_after_wrong_passwords_is_counted_in_plain_words(seconds, text):
    assert proof.wait_text(seconds) == text


def test_a_clock_that_is_put_back_keeps_nobody_out_for_longer(monkeypatch):
    clock = [10**9]
    monkeypatch.setattr(time, "time", lambda: clock[0])
    proof.store_hash(PASSWORD)
    proof.count(50)
    clock[0] -= 10**8
    assert "5 minutes" in refused(proof.check, PASSWORD) or "6 minutes" in refused(proof.check, PASSWORD)


def test_a_try_that_is_broken_off_counts(monkeypatch):
    proof.store_hash(PASSWORD)
    monkeypatch.setattr(proof, "hashed", lambda *_words, **_more: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        proof.check(PASSWORD)
    assert proof.tries()[0] == 1


def test_passwords_are_compared_in_constant_time(monkeypatch):
    compared = []
    proof.store_hash(PASSWORD)
    monkeypatch.setattr("hmac.compare_digest", lambda one, other: compared.append((one, other)) or one == other)
    proof.check(PASSWORD)
    assert len(compared) == 1


@pytest.mark.parametrize(
    ("job", "operation", "digest"), [(OTHER_JOB, TANK, "d"), (JOB, POND, "d"), (JOB, TANK, "e"), (JOB, TANK, "")]
)
def test_a_proof_is_for_one_job_one_operation_and_one_plan(job, operation, digest):
    proof.store_hash(PASSWORD)
    proof.grant(JOB, TANK, "d", PASSWORD)
    assert not proof.redeem(job, operation, digest)


def test_a_proof_is_used_once_and_not_after_its_time(monkeypatch):
    proof.store_hash(PASSWORD)
    proof.grant(JOB, TANK, "d", PASSWORD)
    assert proof.redeem(JOB, TANK, "d")
    assert not proof.redeem(JOB, TANK, "d")
    proof.grant(JOB, TANK, "d", PASSWORD)
    later = time.clock_gettime(time.CLOCK_BOOTTIME) + proof.SECONDS_VALID + 1
    monkeypatch.setattr(time, "clock_gettime", lambda _clock: later)
    assert not proof.redeem(JOB, TANK, "d")


def test_a_wrong_password_grants_nothing():
    proof.store_hash(PASSWORD)
    assert "not the administrator's" in refused(proof.grant, JOB, TANK, "d", OTHER)
    assert not proof.redeem(JOB, TANK, "d")


# --- as web and worker reach it ---------------------------------------------------------------------------------
def ask(request: dict[str, object]) -> dict[str, object]:
    sent: list[dict[str, object]] = []
    protocol.answer_request(json.dumps(request).encode(), sent.append, lambda: None)  # type: ignore[arg-type,return-value]
    assert len(sent) == 1
    return sent[0]


def prove(operation: Operation, password: str) -> dict[str, object]:
    return ask(
        {"verb": "prove", "job": JOB, "digest": "d", "operation": json.loads(as_json(operation)), "password": password}
    )


def test_the_agent_proves_a_job_and_says_so_where_it_knows_no_password():
    assert prove(TANK, PASSWORD) == {"facts": {"known": False}}
    assert not proof.redeem(JOB, TANK, "d")
    assert ask({"verb": "keep-password", "password": PASSWORD}) == {"facts": {"kept": True}}
    assert prove(TANK, PASSWORD) == {"facts": {"known": True}}
    assert proof.redeem(JOB, TANK, "d")


def test_the_agent_refuses_a_wrong_password_and_another_without_the_old_one(capsys):
    ask({"verb": "keep-password", "password": PASSWORD})
    assert "not the administrator's" in str(prove(TANK, OTHER)["refused"])
    assert "already" in str(ask({"verb": "keep-password", "password": OTHER})["refused"])
    assert "not the administrator's" in str(ask({"verb": "keep-password", "password": OTHER, "old": "x"})["refused"])
    assert ask({"verb": "keep-password", "password": OTHER, "old": PASSWORD}) == {"facts": {"kept": True}}
    told = capsys.readouterr()
    assert not any(word in told.out + told.err for word in (PASSWORD, OTHER))


def test_no_password_stands_in_any_file_of_the_agent():
    proof.store_hash(PASSWORD)
    proof.grant(JOB, TANK, "d", PASSWORD)
    files = [path for root in (paths.RUN, paths.AGENT_STATE) for path in root.rglob("*") if path.is_file()]
    assert proof.proof_file(JOB) in files
    assert not [path for path in files if PASSWORD.encode() in path.read_bytes()]
