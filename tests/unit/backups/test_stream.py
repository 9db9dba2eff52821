"""Bytes from one process to another: counted, stopped, and told what went wrong."""

from __future__ import annotations

import hashlib
import os
import signal
import struct
import sys
from pathlib import Path
from typing import Any

import pytest

from appliance.backups import stream
from appliance.backups.stream import send_stream
from appliance.errors import Cancelled, Failed

MIB = 2**20


def quiet(_moved: int) -> None:
    pass


def test_every_byte_arrives(tmp_path):
    source, target = tmp_path / "a", tmp_path / "b"
    source.write_bytes(bytes(range(256)) * 40_000)
    assert send_stream(["cat", str(source)], ["dd", f"of={target}", "status=none"], quiet) == 10_240_000
    assert hashlib.sha256(target.read_bytes()).digest() == hashlib.sha256(source.read_bytes()).digest()


def test_empty_stream_ends():
    assert send_stream(["true"], ["cat"], quiet) == 0


def begin(order: str = "<", *, kind: int = 0, magic: int = 0x2F5BACBAC, version: int = 4 | 1) -> bytes:
    """Made up: the first record of a stream, as ``zfs_ioctl.h`` of OpenZFS says.
    ``version``: 1 a snapshot, 2 a package."""
    return struct.pack(f"{order}IIQQ", kind, 0, magic, version) + bytes(288)


def send_foreign(tmp_path: Path, stream: bytes) -> bytes:
    """What the receiver gets of a stream of another computer."""
    source, target = tmp_path / "a", tmp_path / "b"
    source.write_bytes(stream)
    try:
        moved = send_stream(["cat", str(source)], ["dd", f"of={target}", "status=none"], quiet, foreign=True)
        assert moved == len(stream)
    finally:
        found = target.read_bytes()
    return found


@pytest.mark.parametrize("order", ["<", ">"])
def test_snapshot_of_another_computer_arrives_whole(tmp_path, order):
    stream = begin(order) + bytes(range(256)) * 4000
    assert send_foreign(tmp_path, stream) == stream


@pytest.mark.parametrize(
    "stream",
    [
        begin(version=4 | 2),  # a package, which can hold a dataset with mountpoint=/etc/cron.d
        begin(">", version=2),
        begin(version=3),
        begin(version=0),
        begin(kind=5),
        begin(magic=0x2F5BACBAD),
        b"Welcome to this computer, where somebody has changed .bashrc",
    ],
)
def test_package_of_another_computer_does_not_reach_zfs(tmp_path, stream):
    with pytest.raises(Failed, match="not send exactly one snapshot"):
        send_foreign(tmp_path, stream)
    assert (tmp_path / "b").read_bytes() == b""


def test_other_computer_that_sends_nothing_is_told_in_its_words():
    with pytest.raises(Failed) as failed:
        send_stream(
            ["sh", "-c", "echo there is no such snapshot >&2; exit 1"], ["sh", "-c", "cat; exit 1"], quiet, foreign=True
        )
    assert "no such snapshot" in failed.value.said


def test_other_computer_that_says_nothing_at_all_can_be_stopped(monkeypatch):
    monkeypatch.setattr(stream, "SECONDS_BETWEEN_LOOKS", 0.05)

    def stop(_moved: int) -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        send_stream(["sleep", "30"], ["cat"], stop, foreign=True)
    monkeypatch.setattr(stream, "SILENCE", 0.2)
    with pytest.raises(Failed, match="stopped moving"):
        send_stream(["sleep", "30"], ["cat"], quiet, foreign=True)


def test_words_of_the_receiver_are_told():
    with pytest.raises(Failed) as failed:
        send_stream(["yes"], ["sh", "-c", "head -c 100000 >/dev/null; echo out of space >&2; exit 1"], quiet)
    assert failed.value.said == "out of space"


def test_sender_that_fails_is_told_although_the_receiver_is_content():
    with pytest.raises(Failed) as failed:
        send_stream(["sh", "-c", "echo cannot send >&2; exit 1"], ["cat"], quiet)
    assert failed.value.said == "cannot send"


def test_stop_ends_the_sender_and_lets_the_receiver_keep_what_it_has(tmp_path, monkeypatch):
    monkeypatch.setattr(stream, "SECONDS_BETWEEN_LOOKS", 0.05)
    done = tmp_path / "done"

    def stop(moved: int) -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        send_stream(["yes"], ["sh", "-c", f"cat >/dev/null; touch {done}"], stop)
    assert done.exists()


def test_silence_is_a_failure_and_not_an_endless_wait(monkeypatch):
    monkeypatch.setattr(stream, "SILENCE", 0.2)
    monkeypatch.setattr(stream, "SECONDS_BETWEEN_LOOKS", 0.05)
    with pytest.raises(Failed):
        send_stream(["sleep", "30"], ["cat"], quiet)


def test_pool_that_stopped_ends_the_sender_and_its_receiver_is_not_waited_for(tmp_path, monkeypatch):
    """A receiver of a pool that waits for its disks sits in the kernel: not even SIGKILL ends it."""
    monkeypatch.setattr(stream, "SECONDS_BETWEEN_LOOKS", 0.05)
    sender, receiver = tmp_path / "sender", tmp_path / "receiver"
    asked = []

    def stopped() -> bool:
        asked.append(True)
        return True

    with pytest.raises(Failed) as failed:
        send_stream(
            ["sh", "-c", f"echo $$ > {sender}; exec yes"],
            ["sh", "-c", f"echo $$ > {receiver}; exec sleep 300"],
            quiet,
            stopped=stopped,
        )
    try:
        assert "restart the box" in failed.value.said
        assert asked
        with pytest.raises(ProcessLookupError):
            os.kill(int(sender.read_text()), 0)
        os.kill(int(receiver.read_text()), 0)  # it is left alone
    finally:
        os.kill(int(receiver.read_text()), signal.SIGKILL)


def is_gone(file: Path) -> bool:
    try:
        os.kill(int(file.read_text()), 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.parametrize("at", ["in the middle", "when it is stopped", "at its end"])
def test_connection_whose_other_side_hangs_is_ended_and_keeps_no_lock(tmp_path, monkeypatch, at):
    """sshd there still answers while ZFS waits for a disk, so ssh never gives up, and what it holds stays locked."""
    for name, seconds in (("SECONDS_BETWEEN_LOOKS", 0.05), ("SILENCE", 0.3), ("SECONDS_TO_LET_GO", 0.3)):
        monkeypatch.setattr(stream, name, seconds)
    monkeypatch.setattr(stream, "SECONDS_TO_FINISH", 0.3 if at == "at its end" else 3600)
    receiver = tmp_path / "receiver"

    def tell(_moved: int) -> None:
        if at == "when it is stopped":
            raise Cancelled

    sender = ["true"] if at == "at its end" else ["yes"]
    hangs = ["sh", "-c", f"echo $$ > {receiver}; exec sleep 300"]
    with pytest.raises((Failed, Cancelled)):
        send_stream(sender, hangs, tell, may_end=True)
    assert is_gone(receiver)


def test_other_side_that_is_slow_to_keep_what_it_has_is_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(stream, "SECONDS_BETWEEN_LOOKS", 0.05)
    done = tmp_path / "done"

    def stop(_moved: int) -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        send_stream(["yes"], ["sh", "-c", f"cat >/dev/null; sleep 0.5; touch {done}"], stop, may_end=True)
    assert done.exists()


def test_stop_while_the_pool_has_stopped_does_not_wait_for_the_receiver(tmp_path, monkeypatch):
    monkeypatch.setattr(stream, "SECONDS_BETWEEN_LOOKS", 0.05)
    receiver = tmp_path / "receiver"

    def stop(_moved: int) -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        send_stream(["yes"], ["sh", "-c", f"echo $$ > {receiver}; exec sleep 300"], stop, stopped=receiver.exists)
    os.kill(int(receiver.read_text()), signal.SIGKILL)


def test_long_complaints_do_not_block():
    with pytest.raises(Failed) as failed:
        send_stream(["sh", "-c", "yes complaint | head -c 1000000 >&2; exit 1"], ["cat"], quiet)
    assert 0 < len(failed.value.said) <= stream.MOST_SAID


READS_LITTLE = "import os, time\nwhile os.read(0, 16384): time.sleep(0.0002)"
WRITES_LITTLE = "import os, time\nfor part in range(2048): os.write(1, bytes(16384)); time.sleep(0.0002)"


@pytest.mark.parametrize(
    ("sender", "receiver"),
    [
        (["head", "-c", str(32 * MIB), "/dev/zero"], [sys.executable, "-c", READS_LITTLE]),
        ([sys.executable, "-c", WRITES_LITTLE], ["cat"]),
    ],
    ids=["receiver", "sender"],
)
def test_side_that_takes_little_at_a_time_does_not_wake_the_relay_for_each(monkeypatch, sender, receiver):
    """As ssh does: 16 KiB. To be woken for each costs many times what moving the bytes does."""
    real, tries = os.splice, []

    def splice(*given: Any, **how: Any) -> int:
        tries.append(1)
        return real(*given, **how)

    monkeypatch.setattr(os, "splice", splice)
    assert send_stream(sender, receiver, quiet) == 32 * MIB
    assert len(tries) < 32 * 32, "one for each part would be 64 a MiB, and as many that find nothing"


def test_missing_tool_leaves_no_process():
    with pytest.raises(Failed):
        send_stream(["no-such-tool-of-larder"], ["cat"], quiet)
