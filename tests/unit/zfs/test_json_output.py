"""One value with bytes that are not UTF-8 costs itself and nothing else:
OpenZFS cuts its JSON off there, with status 0."""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Sequence
from typing import Any

import pytest

from appliance import command
from appliance.errors import Failed
from appliance.facts.datasets import Dataset
from appliance.pools import damaged_files
from appliance.zfs import json_output, mount, status
from tests.unit.made import dataset, recorded, recorded_text

BAD = "\udcff"  # as os.fsdecode spells the byte 0xff
POLICY = "larder:policy"


class Printer:
    """Prints an object as nvlist_print_json does: up to the first string that is no text of the locale.
    Strings have other bytes as surrogates. Compiling the locale is real where ``compiles``."""

    def __init__(self, found: Any) -> None:
        self.found, self.ran, self.compiles = found, list[tuple[str, ...]](), True
        self.real = command.run

    def run(self, argv: Sequence[str], *, environment: dict[str, str] | None = None, **options: Any) -> command.Result:
        self.ran.append(tuple(argv))
        if argv[0] == "localedef":
            if not self.compiles:
                raise command.CommandMissing("localedef is not installed on this system")
            return self.real(argv, **options)
        return command.Result(tuple(argv), 0, self.text(bool((environment or {}).get("LOCPATH"))), "", 0.0)

    def text(self, bytewise: bool) -> str:
        if bytewise:
            return json.dumps(self.spell(self.found))
        text = json.dumps(self.found, ensure_ascii=False)
        return next((text[:at] for at, one in enumerate(text) if "\udc80" <= one <= "\udcff"), text)

    def spell(self, value: Any) -> Any:
        """Each byte of each string as one character."""
        if isinstance(value, dict):
            return {self.spell(key): self.spell(one) for key, one in value.items()}
        if isinstance(value, list):
            return [self.spell(one) for one in value]
        return value.encode(errors="surrogateescape").decode("latin-1") if isinstance(value, str) else value


@pytest.fixture
def prints(monkeypatch):
    def start(found: Any) -> Printer:
        printer = Printer(found)
        monkeypatch.setattr(command, "run", printer.run)
        return printer

    json_output.warn_once.cache_clear()
    return start


def listing(name: str, key: str, value: str, source: str) -> dict[str, Any]:
    """Derived from the recorded list: another value."""
    raw = copy.deepcopy(recorded("zfs-list-2.3.9.json"))
    raw["datasets"][name]["properties"][key] = {"value": value, "source": {"type": source, "data": "-"}}
    return raw


def test_recorded_output_of_both_locales_is_read_whole(monkeypatch):
    """Printed by libnvpair 2.3.9 of Debian 13 with C.UTF-8, where it ends in the middle, and
    with the locale made here."""
    cut, whole = recorded_text("nvlist-print-json-2.3.9.txt").splitlines()
    with pytest.raises(ValueError):
        json.loads(cut)

    def run(argv: Sequence[str], *, environment: dict[str, str] | None = None, **_more: Any) -> command.Result:
        return command.Result(tuple(argv), 0, whole if environment else cut, "", 0.0)

    monkeypatch.setattr(command, "run", run)
    monkeypatch.setattr(json_output, "compile_locale", lambda _folder: None)
    found = json_output.read_json(["zfs", "list"], timeout=1)
    assert found == {"before": "café", "bad": "/tank/M\ufffdsik", "after": 'tank "q"\n'}


def test_each_byte_is_a_character_in_the_locale_that_is_compiled(tmp_path):
    json_output.compile_locale(tmp_path)
    script = (
        "import ctypes; libc = ctypes.CDLL(None); libc.setlocale(6, b''); one = ctypes.c_uint32()\n"
        "size = lambda byte: libc.mbrtowc(ctypes.byref(one), bytes([byte]), 1, (ctypes.c_char * 16)())\n"
        "print([byte for byte in range(1, 256) if size(byte) != 1 or one.value != byte])"
    )
    environment = json_output.locale_environment(str(tmp_path))
    assert command.run([sys.executable, "-I", "-c", script], environment=environment).stdout == "[]\n"
    assert command.run([sys.executable, "-I", "-c", script]).stdout != "[]\n"


def test_policy_with_other_bytes_hides_no_other_dataset(prints, caplog):
    raw = recorded("zfs-list-2.3.9.json")
    expected = {one.name: one for one in status.parse_datasets(raw)}
    name = list(raw["datasets"])[1]
    prints(listing(name, POLICY, BAD, "RECEIVED"))
    found = {one.name: one for one in status.read_datasets()}
    assert list(found) == list(expected)
    assert (found[name].policy, found[name].policy_source) == ("\ufffd", "received")
    assert all(found[one] == expected[one] for one in found if not one.startswith(name))
    assert name in caplog.text and POLICY in caplog.text


def test_journal_names_the_value_once(prints, caplog):
    prints(listing("tank", POLICY, BAD, "RECEIVED"))
    status.read_datasets()
    status.read_datasets()
    assert caplog.text.count(POLICY) == 1


def test_list_of_plain_values_is_read_by_one_command(prints):
    printer = prints(listing("tank", POLICY, "größer", "LOCAL"))
    assert next(one.policy for one in status.read_datasets() if one.name == "tank") == "größer"
    assert len(printer.ran) == 1


def test_foreign_mountpoint_with_other_bytes_is_left_unmounted(prints):
    """As a disk of a box with Latin-1 names brings it."""
    raw = listing("tank", "mountpoint", "/tank", "LOCAL")
    place = {"mountpoint": "/tank/M\udcfcsik", "canmount": "on", "type": "filesystem"}
    raw["datasets"]["tank/music"] = {
        "name": "tank/music",
        "properties": {key: {"value": value, "source": {"type": "LOCAL", "data": "-"}} for key, value in place.items()},
    }
    prints(raw)
    found = {one.name: one for one in mount.foreign_properties("tank")}
    assert found["tank/music"].values["mountpoint"] == "/tank/M\ufffdsik"
    assert [one.name for one in mount.mounted_elsewhere([found["tank/music"]], "tank")] == ["tank/music"]
    (argv,) = mount.neutralise_properties([found["tank/music"]], "tank")
    assert "canmount=noauto" in argv
    assert not mount.is_inside("/tank/M\ufffdsik", "/tank", frozenset({"/tank/M\ufffdsik"}))
    assert not mount.may_be_mounted(found["tank/music"], None, frozenset({"/tank/M\ufffdsik"}))


def test_path_with_other_bytes_in_a_label_hides_no_pool(prints):
    raw = copy.deepcopy(recorded("zpool-status-missing-2.3.9.json"))
    (pool,) = raw["pools"].values()
    expected = next(status.parse_pools(raw))
    (top,) = next(iter(pool["vdevs"].values()))["vdevs"].values()
    first, second = list(top["vdevs"])[:2]
    renamed = {first: f"M{BAD}", second: "M\udcfe"}
    for old, new in renamed.items():
        top["vdevs"][old].update(name=new, path=f"/dev/{new}", phys_path=new, devid=new)
    top["vdevs"] = {renamed.get(key, key): one for key, one in top["vdevs"].items()}
    raw["pools"]["other"] = {
        **copy.deepcopy(recorded("zpool-status-raidz2-2.3.9.json"))["pools"]["tank"],
        "name": "other",
    }
    prints(raw)
    found = {one.name: one for one in status.read_pools()}
    assert set(found) == {expected.name, "other"}
    guids = [one.guid for one in expected.devices()]
    assert [one.guid for one in found[expected.name].devices()] == guids
    assert "/dev/M\ufffd" in {one.path for one in found[expected.name].devices()}


def test_damaged_file_with_other_bytes_is_named_beside_the_others(prints):
    prints({"pools": {"tank": {"errlist": [f"/tank/{BAD}.jpg", "/tank/b.jpg"]}}})
    assert damaged_files.read_damaged_files("tank")["files"] == ["/tank/\ufffd.jpg", "/tank/b.jpg"]


def test_without_the_locale_it_fails_as_before(prints):
    prints(listing("tank", POLICY, BAD, "RECEIVED")).compiles = False
    with pytest.raises(Failed, match="zfs list printed something that is not JSON"):
        status.read_datasets()


@pytest.mark.parametrize("found", [["pools"], "pools", 1])
def test_what_is_no_object_is_no_box_without_pools(prints, found):
    prints(found)
    with pytest.raises(Failed, match="not what was asked for"):
        status.read_pools()


def test_nothing_printed_is_an_error_but_where_there_may_be_nothing(monkeypatch):
    monkeypatch.setattr(command, "run", lambda argv, **_more: command.Result(tuple(argv), 0, "\n", "", 0.0))
    monkeypatch.setattr(json_output, "compile_locale", lambda _folder: None)
    assert json_output.read_json(["zfs", "list"], timeout=1, may_be_empty=True) == {}
    with pytest.raises(Failed):
        json_output.read_json(["zfs", "list"], timeout=1)


def test_pool_that_cannot_be_listed_leaves_the_others_at_the_start_of_the_box(monkeypatch):
    def read(*of: str) -> tuple[Dataset, ...]:
        if of != ("tank",):
            raise Failed("zfs list printed something that is not JSON")
        return (dataset("tank"), dataset("tank/photos"))

    monkeypatch.setattr(status, "read_datasets", read)
    monkeypatch.setattr(command, "run", lambda argv, **_more: command.Result(tuple(argv), 0, "odd\ntank\n", "", 0.0))
    said: list[str] = []
    assert [one.name for one in status.read_each_pool(said.append)] == ["tank", "tank/photos"]
    assert len(said) == 2 and said[1].startswith("odd: ")


def test_start_of_the_box_waits_for_a_hanging_list_once(monkeypatch):
    def hang(*_of: str) -> None:
        raise command.CommandTimedOut(["zfs"], 120, None)

    monkeypatch.setattr(status, "read_datasets", hang)
    monkeypatch.setattr(command, "run", lambda *_args, **_more: pytest.fail("a command was run"))
    said: list[str] = []
    assert status.read_each_pool(said.append) == ()
    assert len(said) == 1
