"""NFS exports: what the file says, what the server is seen to serve, and what never gets into it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from appliance import command
from appliance.errors import Failed, Refused
from appliance.facts.datasets import Dataset
from appliance.facts.sharing import Account, Share
from appliance.shares import nfs, nfs_access, publish
from appliance.shares.owned_file import OwnedFile
from appliance.shares.settings import Nfs, setting_of
from tests.reasons import expect_refusal
from tests.unit.made import box, dataset, recorded_text

LAN = "192.168.1.0/24"


def exported(name: str = "tank/photos", *, share: object = None, **changes: Any) -> Dataset:
    """Made up: a dataset that asks to be served over NFS."""
    setting = share if share is not None else {"nfs": {"hosts": [LAN]}}
    return dataset(name, **{"share": json.dumps(setting), "share_source": "local", **changes})


def rendered(datasets: list[Dataset]) -> str:
    return nfs.render_exports(box(datasets=tuple(datasets)))


def at(file: Path) -> nfs.NfsServing:
    return nfs.NfsServing(OwnedFile(file, nfs.check_exports))


def up(file: Path) -> None:
    """Have the server take up the file as it stands."""
    at(file).take_up(at(file).configured())


def test_an_export_names_who_may_mount_and_how():
    text = rendered([exported()])
    assert text == f'"/tank/photos" {LAN}(rw,sync,root_squash,no_subtree_check,insecure,mountpoint)\n'


def test_each_client_and_each_wish_is_written():
    share = {"nfs": {"hosts": [LAN, "imac.local", "fd00::/8"], "write": False, "root": True, "sync": False}}
    (line,) = rendered([exported(share=share)]).splitlines()
    assert [export.host for export in nfs.parse_exports(line)] == [LAN, "imac.local", "fd00::/8"]
    assert all({"ro", "async", "no_root_squash"} <= export.options for export in nfs.parse_exports(line))


def test_every_export_asks_for_its_file_system_so_that_a_locked_folder_shows_no_empty_place():
    for export in nfs.parse_exports(
        rendered([exported(), exported("tank/locked", key_status="unavailable", mounted=False)])
    ):
        assert "mountpoint" in export.options


def test_a_path_with_a_space_is_written_as_exports_wants_it_and_read_back():
    text = rendered([exported("tank/my photos")])
    assert '"/tank/my\\040photos"' in text
    assert {export.path for export in nfs.parse_exports(text)} == {"/tank/my photos"}


@pytest.mark.parametrize(
    "hosts",
    [
        [],
        ["*"],
        ["0.0.0.0/0"],
        ["a(rw)"],
        ["a b"],
        ["a\n/ *(rw)"],
        ["@all"],
        ["*.lan"],
        [LAN] * 70 + ["10.0.0.0/8"] * 70 + [f"10.1.{n}.1" for n in range(99)],
    ],
)
def test_a_hostile_client_on_foreign_disks_is_served_nothing(hosts):
    assert rendered([exported(share={"nfs": {"hosts": hosts}})]) == ""


@pytest.mark.parametrize(
    "mountpoint", ["/", "/etc", "/root/x", "legacy", "none", "/tank/a\nb", "/tank/../etc", '/tank/"x']
)
def test_a_hostile_place_on_foreign_disks_is_not_served(mountpoint):
    assert rendered([exported(mountpoint=mountpoint)]) == ""


@pytest.mark.parametrize(
    "line",
    [
        "/tank/photos *(rw)",
        '"/tank/photos" 192.168.1.0/24(rw,wibble)',
        '"/etc" 192.168.1.0/24(rw)',
        '"/tank/photos" 0.0.0.0/0(rw)',
        '"/tank/photos"',
        '"/tank/photos" 192.168.1.0/24 (rw)',
    ],
)
def test_the_check_refuses_a_file_that_larder_would_not_write(tmp_path, line):
    file = tmp_path / "larder.exports"
    file.write_text(f"{line}\n")
    with pytest.raises((Failed, Refused)):
        nfs.check_exports(file)


def test_the_check_takes_what_is_rendered(tmp_path):
    file = tmp_path / "larder.exports"
    file.write_text("# a comment\n" + rendered([exported(), exported("tank/my photos")]))
    nfs.check_exports(file)


def test_what_the_server_serves_is_read_from_its_own_list():
    exports = nfs.parse_listed(recorded_text("exportfs-s-2.8.3.txt"))
    assert ("/nfsafp/with space", "*.lan") in {(export.path, export.host) for export in exports}
    assert len(exports) == 5
    written = next(export for export in exports if export.host == "10.0.0.0/8")
    assert {"ro", "async", "no_root_squash", "mountpoint"} <= written.options


class Nfsd:
    """Answers systemctl and exportfs as nfs-utils 2.8.3 does; remembers what was asked."""

    def __init__(self, *, active: bool, serves: str = "", status: int = 0) -> None:
        self.active, self.serves, self.status = active, serves, status
        self.ran: list[list[str]] = []

    def run(self, argv: list[str], **_more: Any) -> command.Result:
        self.ran.append(list(argv))
        out, status = "", 0
        if argv[:2] == ["systemctl", "is-active"]:
            out = "active" if self.active else "inactive"
        elif argv[0] == "systemctl":
            self.active = argv[1] == "enable"
        elif argv == ["exportfs", "-s"]:
            out = self.serves
        elif argv == ["exportfs", "-r"]:
            status = self.status
        return command.Result(tuple(argv), status, out, "exportfs: said no" if status else "", 0.0)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "larder.exports"


def nfsd(monkeypatch: pytest.MonkeyPatch, **how: Any) -> Nfsd:
    server = Nfsd(**how)
    monkeypatch.setattr(command, "run", server.run)
    return server


SERVED = (
    f"/tank/photos  {LAN}(sync,wdelay,hide,no_subtree_check,mountpoint,sec=sys,rw,insecure,root_squash,no_all_squash)\n"
)


def test_the_first_export_starts_the_server_and_the_last_one_stops_it(file, monkeypatch):
    server = nfsd(monkeypatch, active=False)
    file.write_text(rendered([exported()]))
    up(file)
    assert ["systemctl", "enable", "--now", "nfs-server.service"] in server.ran
    file.write_text("")
    up(file)
    assert server.ran[-1] == ["systemctl", "disable", "--now", "nfs-server.service"]


def test_an_administrators_own_exports_keep_the_server_running(file, monkeypatch):
    server = nfsd(monkeypatch, active=True, serves="/srv/own  192.168.1.0/24(rw)\n")
    file.write_text("")
    up(file)
    assert not any("disable" in argv for argv in server.ran)


def test_a_running_server_is_not_started_again_so_nobody_is_dropped(file, monkeypatch):
    server = nfsd(monkeypatch, active=True, serves=SERVED)
    file.write_text(rendered([exported()]))
    up(file)
    assert [argv for argv in server.ran if argv[0] == "systemctl" and argv[1] != "is-active"] == []
    assert at(file).served() == {("/tank/photos", "/tank/photos")}


def test_a_client_whose_name_nobody_knows_is_found_out(file, monkeypatch):
    nfsd(monkeypatch, active=True, serves=SERVED)
    file.write_text(rendered([exported(share={"nfs": {"hosts": [LAN, "macbook.local"]}})]))
    assert at(file).served() == set()
    assert "macbook.local" in at(file).why_not()


def test_exports_that_the_server_does_not_take_are_told_in_its_words(file, monkeypatch):
    nfsd(monkeypatch, active=True, status=1)
    file.write_text(rendered([exported()]))
    with pytest.raises(Failed, match="said no"):
        up(file)


def test_a_removed_export_is_really_closed(file, monkeypatch, tmp_path):
    unlock = tmp_path / "unlock_filesystem"
    unlock.write_text("")
    monkeypatch.setattr(nfs, "UNLOCK", unlock)
    server = nfsd(monkeypatch, active=True, serves=SERVED)
    at(file).close([Share("nfs", "/tank/photos", "/tank/photos")])
    assert ["exportfs", "-u", f"{LAN}:/tank/photos"] in server.ran
    assert ["exportfs", "-f"] in server.ran
    assert unlock.read_text() == "/tank/photos"


# Everybody counts as one user


ANNA = Account("anna", 10000)


@pytest.fixture
def people(monkeypatch):
    monkeypatch.setattr(nfs, "people_number", lambda: 9999)


def as_anna(**more: object) -> Dataset:
    return exported(share={"nfs": {"hosts": [LAN], "everybody_as": "anna", **more}})


def test_everybody_counts_as_the_chosen_user_by_the_numbers_of_this_box(people, tmp_path):
    text = nfs.render_exports(box(datasets=(as_anna(),), accounts=(ANNA,)))
    (export,) = nfs.parse_exports(text)
    assert {"all_squash", "anonuid=10000", "anongid=9999"} <= export.options
    file = tmp_path / "larder.exports"
    file.write_text(text)
    nfs.check_exports(file)


def test_everybody_counts_as_nobody_once_the_chosen_user_is_gone(people):
    """Never by number then: that would let in more than somebody chose."""
    for accounts in ((), (Account("ben", 10000),)):
        (export,) = nfs.parse_exports(nfs.render_exports(box(datasets=(as_anna(),), accounts=accounts)))
        assert {"all_squash", "anonuid=65534", "anongid=65534"} <= export.options


@pytest.mark.parametrize(("heir", "left"), [("", "larder-nobody"), ("ben", "ben")])
def test_a_removed_user_hands_the_export_on_or_leaves_it_to_nobody(heir, left):
    setting = setting_of(as_anna())
    assert setting
    assert setting.people == {"anna"}
    after = setting.without("anna", heir)
    assert after.nfs
    assert after.nfs.everybody_as == left
    assert after.people == ({"ben"} if heir else set())


def test_root_cannot_be_root_while_everybody_counts_as_one_user():
    with expect_refusal("nfs-root-and-one-user"):
        Nfs(hosts=(LAN,), everybody_as="anna", root=True)


def test_only_a_user_who_is_there_can_be_chosen():
    refused = list(nfs.SERVING.against(as_anna(), Nfs(hosts=(LAN,), everybody_as="eve"), box(accounts=(ANNA,))))
    assert [(reason.code, reason.field) for reason in refused] == [("user-missing", "everybody_as")]


@pytest.mark.parametrize("options", ["all_squash,anonuid=0,anongid=0", "anonuid=-1", "anonuid=1x"])
def test_the_check_refuses_numbers_that_larder_would_not_write(tmp_path, options):
    file = tmp_path / "larder.exports"
    file.write_text(f'"/tank/photos" {LAN}(rw,{options})\n')
    with pytest.raises((Failed, Refused)):
        nfs.check_exports(file)


# As whom the server acts


@pytest.mark.parametrize(
    ("part", "person", "found"),
    [
        (Nfs(hosts=(LAN,), everybody_as="anna"), "", (10000, 9999, "anna", True)),
        (Nfs(hosts=(LAN,), everybody_as="anna"), "ben", (10000, 9999, "anna", True)),
        (Nfs(hosts=(LAN,), everybody_as="eve"), "", (65534, 65534, "", True)),
        (Nfs(hosts=(LAN,)), "anna", (10000, 9999, "anna", False)),
        (Nfs(hosts=(LAN,)), "", (1000, 1000, "", False)),
    ],
)
def test_the_try_is_made_with_the_numbers_that_the_server_uses(part, person, found):
    asked = nfs_access.acting_numbers(part, person, (ANNA,), 9999)
    assert (asked.uid, asked.gid, asked.who, asked.for_everybody) == found


class Kernel:
    """Answers as the kernel does for one uid: what it may not do is named by the last argument."""

    def __init__(self, *refused: tuple[str, str], unreadable: str = "") -> None:
        self.refused, self.unreadable = set(refused), unreadable
        self.ran: list[list[str]] = []

    def run(self, argv: list[str], **_more: Any) -> command.Result:
        self.ran.append(argv)
        what, out = argv[5:7] if argv[5] == "test" else ("find", argv[6]), ""
        if what[0] == "test":
            what = (argv[6], argv[7])
        elif "-readable" in argv:
            return command.Result(tuple(argv), 0, self.unreadable, "", 0.0)
        return command.Result(tuple(argv), int(tuple(what) in self.refused), out, "", 0.0)


def tried(monkeypatch, *refused: tuple[str, str], unreadable: str = "") -> nfs_access.Numbers:
    kernel = Kernel(*refused, unreadable=unreadable)
    monkeypatch.setattr(command, "run", kernel.run)
    found = nfs_access.try_access(
        nfs_access.Numbers(uid=10000, gid=9999, who="anna", for_everybody=True), "/tank/photos"
    )
    assert all(argv[:5] == ["setpriv", "--reuid=10000", "--regid=9999", "--clear-groups", "--"] for argv in kernel.ran)
    return found


def test_the_try_finds_what_the_numbers_may_not_do(monkeypatch):
    assert tried(monkeypatch, ("-x", "/tank")).stopped_at == "/tank"
    assert tried(monkeypatch, ("find", "/tank/photos")).stopped_at == "/tank/photos"
    assert tried(monkeypatch, unreadable="/tank/photos/a\n").unreadable == "/tank/photos/a"
    assert not tried(monkeypatch, ("-w", "/tank/photos")).may_write
    whole = tried(monkeypatch)
    assert (whole.stopped_at, whole.unreadable, whole.may_write) == ("", "", True)


# A computer whose name is not found now


@pytest.fixture
def two_exports(file, monkeypatch):
    """tank/films is for a computer that is switched off; tank/photos is served."""
    monkeypatch.setattr(publish, "SECONDS_TO_TAKE_UP", 0)
    monkeypatch.setattr(publish, "tell_network", lambda *_given: None)
    monkeypatch.setitem(publish.SERVING, "nfs", at(file))
    nfsd(monkeypatch, active=True, serves=SERVED)
    return box(datasets=(exported(), exported("tank/films", share={"nfs": {"hosts": ["macbook.local"]}})))


@pytest.mark.parametrize("changed", [{"/tank/photos"}, None])
def test_a_name_that_is_not_found_does_not_fail_changes_of_other_exports(two_exports, file, changed):
    notes: list[str] = []
    publish.publish_shares(two_exports, ["nfs"], changed=changed, note=notes.append)
    assert notes == ["Nobody in the network knows macbook.local. Use its address instead"]
    assert {share.path for share in at(file).configured()} == {"/tank/photos", "/tank/films"}


def test_a_name_that_is_not_found_fails_the_change_of_its_own_export(two_exports, file):
    with pytest.raises(Failed, match=r"Nobody in the network knows macbook\.local"):
        publish.publish_shares(two_exports, ["nfs"], changed={"/tank/films"})
    assert at(file).configured() == ()


def test_another_reason_still_fails_a_change_of_all(two_exports, monkeypatch, file):
    nfsd(monkeypatch, active=True, serves="")
    monkeypatch.setattr(nfs.NfsServing, "unknown", lambda _self, _paths=None: ())
    with pytest.raises(Failed, match="is not served"):
        publish.publish_shares(two_exports, ["nfs"])
