"""What another computer answers, honest or not: what is missing is named, and nothing that it
says is believed blindly."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from appliance.backups.remote import answers
from appliance.errors import Failed
from appliance.facts.remote import Remote

REMOTE = Remote("0badcafe", "attic.lan", 22, "backup", "tank/attic")
# Made up after zfs-allow(8) of 2.3.9 and the answers of the script with real ZFS.
HELLO = """\
larder-peer\t1
user\tbackup
groups\tbackup users
aes\tyes
zfs\tyes
version\tzfs-2.3.9-0+deb13u1
version\tzfs-kmod-2.3.9-0+deb13u1
root\tavailable\t5000000000
root\tmountpoint\tnone
root\treadonly\ton
root\tsetuid\toff
root\tdevices\toff
root\texec\toff
root\tencryption\toff
pool\tfeature@large_blocks\tactive
pool\tfeature@embedded_data\tactive
pool\tfeature@lz4_compress\tactive
pool\tfeature@zstd_compress\tenabled
allow\t---- Permissions on tank/attic ---------------------------------------
allow\tLocal+Descendent permissions:
allow\t\tuser backup create,mount,receive:append,userprop,send
end
"""


def codes(said: str, remote: Remote = REMOTE) -> list[str]:
    return [reason.code for reason in answers.problems(answers.parse_hello(said, remote.host), remote)]


def text(said: str) -> str:
    return " ".join(reason.text for reason in answers.problems(answers.parse_hello(said, REMOTE.host), REMOTE))


def test_computer_that_has_everything_is_ready():
    hello = answers.parse_hello(HELLO, "attic.lan")
    assert codes(HELLO) == []
    assert (hello.version, hello.version_text, hello.available, hello.aes) == ((2, 3, 9), "2.3.9", 5 * 10**9, True)
    assert hello.features["large_blocks"] == "active" and hello.features["zstd_compress"] == "enabled"
    assert not hello.may_destroy


@pytest.mark.parametrize(
    ("old", "new", "code", "word"),
    [
        ("zfs\tyes\n", "", "remote-no-zfs", "has no ZFS"),
        ("zfs-kmod-2.3.9", "zfs-kmod-0.7.13", "remote-zfs-old", "ZFS 0.7.13"),
        ("zfs-kmod-", "x", "remote-zfs-old", "older than 0.8"),
        ("mount,", "", "remote-right-missing", "zfs allow -u backup mount tank/attic"),
        (",userprop", "", "remote-right-missing", "userprop is missing"),
        (
            "user backup create",
            "user other create",
            "remote-right-missing",
            "create,mount,receive:append,userprop is",
        ),
        ("group", "group", "", ""),
        ("Local+Descendent", "Local", "remote-right-missing", "create"),
        ("mountpoint\tnone", "mountpoint\t/tank/attic", "remote-root-open", "zfs set mountpoint=none tank/attic"),
        ("setuid\toff", "setuid\ton", "remote-root-open", "setuid=off"),
        ("available\t5000000000", "available\t0", "remote-no-room", "no free space"),
        ("available\t5000000000", "available\t-5", "remote-no-room", "no free space"),
    ],
)
def test_what_is_missing_is_named(old, new, code, word):
    said = HELLO.replace(old, new)
    assert codes(said) == ([code] if code else [])
    assert word in text(said)


def test_missing_folder_is_named_alone():
    said = "".join(line for line in HELLO.splitlines(keepends=True) if not line.startswith("root\t"))
    assert codes(said) == ["remote-no-root"]


@pytest.mark.parametrize(
    ("line", "enough"),
    [
        ("group users create,mount,receive:append,userprop,send", True),
        ("everyone create,mount,receive:append,userprop,send", True),
        ("group wheel create,mount,receive:append,userprop,send", False),
        ("user backup create,mount,receive,userprop", True),
    ],
)
def test_rights_come_by_user_group_or_for_everyone(line, enough):
    said = HELLO.replace("user backup create,mount,receive:append,userprop,send", line)
    assert (codes(said) == []) is enough


def test_root_needs_no_rights_and_that_is_said():
    hello = answers.parse_hello(HELLO.replace("user\tbackup", "user\troot"), "attic.lan")
    assert hello.missing_rights == () and hello.may_destroy


def test_older_zfs_has_no_right_to_append_alone():
    said = HELLO.replace("2.3.9", "2.2.7").replace("receive:append", "receive")
    assert codes(said) == []
    assert codes(HELLO.replace("2.3.9", "2.2.7").replace("receive:append", "mount")) == ["remote-right-missing"]


@pytest.mark.parametrize(
    "said",
    [
        "",
        "hello\n",
        "Welcome to attic\n" + HELLO,
        HELLO.replace("end\n", ""),
        "larder-peer\t2\nend\n",
        "larder-peer\t1\n",
    ],
)
def test_what_is_no_whole_answer_is_refused(said):
    with pytest.raises(Failed):
        answers.parse_hello(said, "attic.lan")


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (HELLO.replace("aes\tyes", "script\t2"), []),
        (HELLO, ["remote-script-old"]),
        (HELLO.replace("aes\tyes", "script\t2").replace(",send", ""), ["remote-send-missing"]),
        (HELLO.replace(",send", "").replace("user\tbackup", "user\troot"), ["remote-script-old"]),
    ],
)
def test_what_is_missing_before_a_restore_is_named_and_stops_no_backup(said, expected):
    hello = answers.parse_hello(said, REMOTE.host)
    assert [reason.code for reason in answers.restore_problems(hello, REMOTE)] == expected
    assert codes(said) == []


# --- list -----------------------------------------------------------------------------------------------------------
LIST = """\
larder-peer\t1
tank/attic\ttype\tfilesystem\t-
tank/attic/photos\ttype\tfilesystem\t-
tank/attic/photos\twritten\t0\t-
tank/attic/photos\treceive_resume_token\t-\t-
tank/attic/photos\tmountpoint\tnone\tinherited from tank/attic
tank/attic/photos\tcanmount\ton\tdefault
tank/attic/photos\treadonly\ton\tinherited from tank/attic
tank/attic/photos\tsetuid\toff\tinherited from tank/attic
tank/attic/photos\tdevices\toff\tinherited from tank/attic
tank/attic/photos\texec\toff\tinherited from tank/attic
tank/attic/photos\tlarder:copy-of\t{"guid":5,"raw":false}\tlocal
tank/attic/photos/trip\ttype\tfilesystem\t-
tank/attic/photos/trip\tlarder:copy-of\t{"guid":5,"raw":false}\tinherited from tank/attic/photos
tank/attic/photos@larder-backup-b\tguid\t12\t-
tank/attic/photos@larder-backup-b\tcreatetxg\t200
tank/attic/photos@larder-backup-b\tguid\t12
tank/attic/photos@larder-backup-a\tguid\t11
tank/attic/photos@larder-backup-a\tcreatetxg\t100
tank/attic/photos@larder-backup-a\tivsetguid\t77
tank/other@x\tguid\t13
end
"""


def test_copies_are_listed_with_their_snapshots_in_order():
    found = answers.parse_list(LIST, REMOTE)
    assert set(found) == {"photos", "photos/trip"}
    photos = found["photos"]
    assert photos.guids == (11, 12) and photos.key_sets == {11: "77"}
    assert photos.mark and photos.mark.guid == 5
    assert photos.open_properties == {} and photos.written == 0 and not photos.is_partial


def test_mark_of_the_folder_above_is_not_ones_own():
    assert answers.parse_list(LIST, REMOTE)["photos/trip"].mark is None


def test_properties_that_leave_a_copy_open_are_named():
    said = LIST.replace("mountpoint\tnone", "mountpoint\t/etc").replace("setuid\toff", "setuid\ton")
    wrong = answers.parse_list(said, REMOTE)["photos"].open_properties
    assert wrong == {"mountpoint": "none", "setuid": "off"}
    off = answers.parse_list(said.replace("canmount\ton", "canmount\toff"), REMOTE)["photos"].open_properties
    assert off == {"setuid": "off"}


@pytest.mark.parametrize(
    "name",
    ["tank/attic/../x", "tank/attic/a b", "tank/attic/-F", "tank/atticx/y", "other/photos", "tank/attic/a;id", ""],
)
def test_names_that_no_backup_gave_are_left_out(name):
    assert answers.parse_list(f"larder-peer\t1\n{name}\ttype\tfilesystem\t-\nend\n", REMOTE) == {}


@pytest.mark.parametrize("value", ["", "-1", "1e9", "9" * 21, "x", "²"])
def test_numbers_that_are_none_are_zero(value):
    said = f"larder-peer\t1\ntank/attic/a\twritten\t{value}\t-\nend\n"
    assert answers.parse_list(said, REMOTE)["a"].written == 0


def test_ready_computer_is_one_whose_key_is_confirmed_and_that_answered():
    assert not REMOTE.is_ready
    assert not replace(REMOTE, host_key="a", offered_key="b").is_ready
