from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance import names, passphrases
from appliance.errors import Refused
from tests.reasons import expect_refusal

KINDS = [
    names.check_pool_name,
    names.check_folder_name,
    names.existing_pool,
    names.existing_dataset,
    names.check_share_name,
    names.check_user_name,
    names.by_id,
    names.job_id,
    names.served_path,
]
GOOD = {
    names.check_pool_name: "tank",
    names.check_folder_name: "photos",
    names.existing_pool: "tank",
    names.existing_dataset: "tank/photos",
    names.check_share_name: "photos",
    names.check_user_name: "anna",
    names.by_id: "/dev/disk/by-id/ata-WDC_WD20EARS-00MVWB0_WD-WCAZA0000001",
    names.job_id: "6b1f6a5e-3f0c-4c2e-9a53-0d5b8f9f6a11",
    names.served_path: "/tank/photos",
}


@pytest.mark.parametrize("kind", KINDS)
def test_good_name_is_returned_unchanged(kind):
    assert kind(GOOD[kind]) == GOOD[kind]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "spoil",
    [
        lambda good: "",
        lambda good: good + "\n",
        lambda good: "\n" + good,
        lambda good: good + "\nroot preexec = /bin/sh",
        lambda good: good + "\r",
        lambda good: good + "\0",
        lambda good: good + "\x7f",
        lambda good: "-" + good,
        lambda good: "--help",
        lambda good: good + ";reboot",
        lambda good: good + "$(reboot)",
        lambda good: good + "`reboot`",
        lambda good: good + '"',
        lambda good: good + "'",
        lambda good: good + "%U",
        lambda good: good + "]",
        lambda good: good + "\\",
        lambda good: good + "|cat",
        lambda good: good + "*",
        lambda good: good + "/../../etc",
        lambda good: good + "x" * 5000,
    ],
)
def test_spoiled_name_of_any_kind_is_refused(kind, spoil):
    with pytest.raises(Refused):
        kind(spoil(GOOD[kind]))


@pytest.mark.parametrize("kind", KINDS)
@given(text=st.text(max_size=300))
def test_accepted_name_has_no_invisible_character_and_is_no_option(kind, text):
    try:
        name = kind(text)
    except Refused as refusal:
        assert all(reason.text for reason in refusal.reasons)
        return
    assert name == text
    assert name[0] != "-"
    assert all(ord(letter) >= 32 and letter != "\x7f" for letter in name)
    assert not set(name) & set("\"'`$\\;|&<>*?[]{}%#!~^")


@pytest.mark.parametrize(
    "name",
    [
        "log",
        "mirror",
        "mirror2",
        "Mirror",
        "raidz",
        "raidz1-0",
        "draid",
        "spare",
        "spares",
        "c0",
        "c0t0d0",
        "1tank",
        ".tank",
    ],
)
def test_pool_name_reserved_by_zfs_is_refused(name):
    with pytest.raises(Refused):
        names.check_pool_name(name)


@pytest.mark.parametrize("name", ["logs", "cloud", "tank.2", "media-pool", "T_1", "x" * 40])
def test_plain_pool_name_is_accepted(name):
    assert names.check_pool_name(name) == name


def test_pool_name_of_41_characters_is_refused():
    with pytest.raises(Refused):
        names.check_pool_name("x" * 41)


@pytest.mark.parametrize(
    "name", [".", "..", "a/b", "a@b", "a#b", "photos ", "photos.", " photos", ".zfs", "x" * 61, "Büro"]
)
def test_odd_folder_name_is_refused(name):
    with pytest.raises(Refused):
        names.check_folder_name(name)


@pytest.mark.parametrize("name", ["restoring-deadbeef", "drill-0123abcd"])
def test_folder_name_of_a_restore_or_of_its_test_is_refused(name):
    with expect_refusal("folder-name-reserved"):
        names.check_folder_name(name)
    names.check_folder_name(f"{name}0")


@pytest.mark.parametrize(
    "name", ["tank/a/./b", "tank/../etc", "/tank", "tank/", "tank//a", "tank@snap", "tank#mark", " tank", "x" * 256]
)
def test_dataset_name_impossible_in_zfs_is_refused(name):
    with pytest.raises(Refused):
        names.existing_dataset(name)


def test_existing_dataset_follows_rule_of_zfs():
    assert names.existing_dataset("tank/My Photos: 2026/a-b_c.d") == "tank/My Photos: 2026/a-b_c.d"


@pytest.mark.parametrize(
    "name", ["global", "GLOBAL", "Homes", "printers", "print$", "IPC$", "netlogon", "a]", "a ", "[a", "a=b", "a%b"]
)
def test_share_name_reserved_by_samba_is_refused(name):
    with pytest.raises(Refused):
        names.check_share_name(name)


@pytest.mark.parametrize(
    "name",
    ["root", "larder", "nobody", "www-data", "larder-nobody", "larder-people", "Anna", "@admins", "+a", "1a", "a" * 32],
)
def test_user_name_of_system_or_not_plain_is_refused(name):
    with pytest.raises(Refused):
        names.check_user_name(name)


@pytest.mark.parametrize(
    "path",
    [
        "/dev/sda",
        "sda",
        "/dev/disk/by-id/",
        "/dev/disk/by-id/..",
        "/dev/disk/by-id/../../sda",
        "/dev/disk/by-id/a/../../sda",
        "/dev/disk/by-id/-a",
        "/dev/disk/by-path/pci-0",
    ],
)
def test_disk_path_that_is_not_stable_is_refused(path):
    with pytest.raises(Refused):
        names.by_id(path)


@pytest.mark.parametrize(
    "text", ["short", "       ", "x" * 513, "é" * 257, "eight\nlong", "eight\0long", "tab\tbed passphrase"]
)
def test_passphrase_impossible_in_zfs_is_refused(text):
    with pytest.raises(Refused):
        passphrases.check_passphrase(text)


@pytest.mark.parametrize(
    "text", ["x" * 8, "x" * 512, "é" * 256, "correct horse battery staple", "-leading dash", "$(quotes) \"';"]
)
def test_any_single_line_is_accepted_as_passphrase(text):
    assert passphrases.check_passphrase(text) == text


@pytest.mark.parametrize("text", ["seven77", "x" * 128, "é" * 64, "a line\nand another"])
def test_password_that_samba_cannot_read_is_refused(text):
    with pytest.raises(Refused):
        passphrases.check_password(text)


def test_refusal_does_not_repeat_secret():
    with pytest.raises(Refused) as caught:
        passphrases.check_passphrase("canary\nsecret")
    assert "canary" not in str(caught.value)


@given(st.uuids())
def test_job_id_is_uuid_in_usual_spelling(value):
    assert names.job_id(str(value)) == str(value)
    for other in (value.hex, f"{{{value}}}", value.urn, f"{value} "):
        with pytest.raises(Refused):
            names.job_id(other)


def test_job_id_in_capitals_is_refused():
    with pytest.raises(Refused):
        names.job_id(str(uuid.UUID(int=2**127 + 0xABCDEF)).upper())


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "",
        "none",
        "legacy",
        "tank",
        "/etc",
        "/etc/samba",
        "/root",
        "/var/lib",
        "/usr",
        "/tank/",
        "//tank",
        "/tank/ a",
        "/tank/a ",
        "/x/../etc",
    ],
)
def test_path_of_system_or_not_plain_is_not_served(path):
    with pytest.raises(Refused):
        names.served_path(path)


@pytest.mark.parametrize("path", ["/tank", "/srv/media", "/tank/My Photos/2026", "/tank/Büro", "/mnt/tank-2"])
def test_plain_path_in_any_language_is_served(path):
    assert names.served_path(path) == path


DIGITS = "0123456789abcdefABCDEF0123456789" * 2


@pytest.mark.parametrize("content", [DIGITS.encode(), f"{DIGITS}\n".encode(), f" {DIGITS}\r\n".encode()])
def test_key_file_contains_64_digits(content):
    assert passphrases.parse_key_file(content) == DIGITS


def test_key_file_of_32_bytes_is_the_key():
    assert passphrases.parse_key_file(bytes(range(32))) == bytes(range(32)).hex()


@pytest.mark.parametrize(
    "content", [b"", b"x", b"0" * 63, b"0" * 65, b"g" * 64, b"\xff" * 64, f"{DIGITS}\n{DIGITS}".encode(), b"0" * 4096]
)
def test_any_other_key_file_is_refused(content):
    with pytest.raises(Refused):
        passphrases.parse_key_file(content)
