from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.system import paths, redaction
from appliance.system.redaction import HIDDEN, Redactor

CANARY = "canary-9f3k-Zq7"


@pytest.mark.parametrize(
    "line",
    [
        f"password={CANARY}",
        f'"smtp_password": "{CANARY} and more"',
        f"api-key : '{CANARY}'",
        f"Authorization: Bearer {CANARY}",
        f"bearer {CANARY}",
        f"Cookie: larder-session={CANARY}; x=y",
        f"POST https://hooks.example.org/services/{CANARY} failed",
        f"GET http://ntfy.sh/topic?auth={CANARY}",
        f"could not reach https://anna:{CANARY}@nas.example",
        f"Invalid user {CANARY} from 192.168.1.7 port 4711",
        f"Failed password for invalid user {CANARY} from 192.168.1.7 port 4711 ssh2",
        f"Connection closed by invalid user {CANARY} 192.168.1.7 port 4711 [preauth]",
        f"FAILED LOGIN (1) on '/dev/tty1' FOR '{CANARY}', Authentication failure",
        f"anna : TTY=pts/0 ; PWD=/home/anna ; USER=root ; COMMAND=/usr/bin/curl -u x:{CANARY} https://nas",
        f"-----BEGIN OPENSSH PRIVATE KEY-----\n{CANARY}\n-----END OPENSSH PRIVATE KEY-----",
        f"-----BEGIN PRIVATE KEY-----\n{CANARY}",
    ],
)
def test_what_looks_like_a_secret_is_hidden(line):
    hidden = Redactor().hide(line)
    assert CANARY not in hidden
    assert HIDDEN in hidden


@pytest.mark.parametrize(
    "line",
    [
        "Failed password for root from 192.168.1.7 port 4711 ssh2",
        "Accepted publickey for root from 10.0.2.2 port 53086 ssh2: ED25519 SHA256:abc",
        "sd 2:0:0:0: [sdb] tag#3 FAILED Result: hostbyte=DID_OK driverbyte=DRIVER_OK cmd_age=0s",
        "eid=17 class=statechange pool='tank' vdev=ata-WDC_WD20EARS-00MVWB0_WD-WCAZA0000001-part1 vdev_state=FAULTED",
        "pam_unix(sshd:auth): check pass; user unknown",
        "larder-web.service: Deactivated successfully.",
        "listening on https://larder.local",
    ],
)
def test_plain_lines_stay_as_they_are(line):
    assert Redactor([CANARY]).hide(line) == line


def test_a_raw_key_is_hidden_and_a_git_hash_is_not():
    assert Redactor().hide(f"key {'ab' * 32} given") == f"key {HIDDEN} given"
    assert Redactor().hide("ab" * 20) == "ab" * 20


@given(
    secret=st.text(min_size=redaction.SHORTEST, max_size=40)
    .map(str.strip)
    .filter(lambda one: len(one) >= redaction.SHORTEST),
    before=st.text(max_size=30),
    after=st.text(max_size=30),
)
def test_a_known_secret_is_nowhere_in_whatever_text(secret, before, after):
    redactor = Redactor([secret])
    if secret in HIDDEN:
        return
    hidden = redactor.hide(f"{before}{secret}{after}")
    assert secret not in hidden.replace(HIDDEN, "\0")


@given(text=st.text(max_size=300))
def test_hiding_twice_changes_nothing_more(text):
    redactor = Redactor([CANARY])
    once = redactor.hide(text)
    assert redactor.hide(once) == once


@given(seed=st.sampled_from(["a", "-", "_", "a-", "invalid user ", "://", "@", "=", "'", "token", "\n"]))
def test_long_odd_lines_take_no_more_than_their_length_deserves(seed):
    text = seed * (4000 // len(seed))
    assert isinstance(Redactor([CANARY]).hide(text), str)


def test_secrets_are_read_from_their_files_and_links_are_not_followed(folders, monkeypatch):
    monkeypatch.setattr(paths, "STATE", folders)
    outside = folders / "outside"
    outside.write_text("somebody-elses-file")
    (folders / "secret-key").write_text("the-session-key\n")
    (folders / "mail-password").symlink_to(outside)
    (paths.RUN / "inventory").mkdir()
    os.mkfifo(paths.RUN / "inventory" / "setup-code")
    (paths.AGENT_STATE / "keys").mkdir()
    (paths.AGENT_STATE / "keys" / "17").write_text("a passphrase of a pool")
    monkeypatch.setattr(paths, "SSH", folders / "ssh")
    paths.SSH.mkdir()
    (paths.SSH / "0123abcd.key").write_text(
        "-----BEGIN OPENSSH PRIVATE KEY-----\nthe-key-of-backups\n-----END OPENSSH PRIVATE KEY-----\n"
    )
    (paths.SSH / "0123abcd.json").write_text("settings, which are no secret")
    found = redaction.known_secrets()
    assert found[:2] == ["the-session-key", "a passphrase of a pool"]
    assert len(found) == 3
    assert Redactor(found).hide("sent the-key-of-backups") == f"sent {HIDDEN}"
