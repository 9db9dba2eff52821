"""Files of the daemons, rendered from names and hosts over hostile alphabets: what comes out is what was meant, or nothing is.

The system tests have the daemons themselves read such files back (``tests/system/shares/test_fuzz.py``).
"""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from appliance.facts import Dataset, Facts
from appliance.household import Account, Group
from appliance.shares import adopting, afp, nfs, smb
from appliance.shares.setting import PROTOCOLS, setting_of, wishes
from tests.unit.made import dataset

HOSTILE = st.text(st.sampled_from(list("aZ9 -_.@[]%$;#\\\"'=/*:,()!\n\r\t\x00\x7f\x85\u2028\u202eäаß—🙂")), max_size=24)
PLAIN = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,20}[A-Za-z0-9]", fullmatch=True)
NAMES = st.one_of(PLAIN, HOSTILE, st.sampled_from(["global", "homes", "printers", "GLOBAL", "print$", "IPC$", "Photos", "photos"]))  # fmt: skip
PEOPLE = st.lists(st.one_of(st.sampled_from(["anna", "ben", "@family", "gone"]), HOSTILE), max_size=4)
HOSTS = st.lists(st.one_of(st.sampled_from(["192.168.1.0/24", "10.0.0.7", "imac.local", "fd00::/8", "*", "0.0.0.0/0"]), HOSTILE), max_size=4)  # fmt: skip
SIZES = st.one_of(st.just(0), st.integers(-5, 2**63))
FLAG = st.booleans()
PATHS = st.one_of(st.sampled_from(["/tank/photos", "/tank/with space", "/tank/Fotos ä", "/", "none", "legacy", "/etc"]), HOSTILE.map(lambda text: f"/{text}"))  # fmt: skip
SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        "smb": st.fixed_dictionaries({"name": NAMES}, optional={"write": PEOPLE, "read": PEOPLE, "guest": st.sampled_from(["no", "read", "write", "all"]), "hidden": FLAG, "recycle": FLAG, "exact_case": FLAG, "mac": FLAG, "time_machine": SIZES, "previous": FLAG, "encrypt": FLAG}),
        "nfs": st.fixed_dictionaries({"hosts": HOSTS}, optional={"write": FLAG, "root": FLAG, "sync": FLAG}),
        "afp": st.fixed_dictionaries({"name": NAMES}, optional={"write": PEOPLE, "read": PEOPLE, "time_machine": SIZES}),
    },
)  # fmt: skip


def asking(number: int, setting: dict[str, Any], path: str) -> Dataset:
    share = msgspec.json.encode(setting).decode()
    return dataset(f"tank/f{number}", mountpoint=path, share=share, share_source="local")


def box_of(parts: list[tuple[dict[str, Any], str]]) -> Facts:
    """A box whose folders ask for these, as properties on foreign disks would; two at most have one path."""
    datasets = tuple(asking(number, *part) for number, part in enumerate(parts))
    unique = {one.mountpoint: one for one in datasets}
    people = (Account("anna", 1001), Account("ben", 1002))
    return Facts(datasets=tuple(unique.values()), accounts=people, groups=(Group("family", 20000, ("anna",)),))


BOXES = st.lists(st.tuples(SETTINGS, PATHS), max_size=4).map(box_of)


@given(facts=BOXES)
@settings(max_examples=150)
def test_sambas_file_holds_the_shares_that_were_meant_and_no_other_line(facts):
    found = adopting.sections_of_samba(smb.render(facts))
    meant = {part.name: (dataset.mountpoint, part) for dataset, part in smb.asked(facts)}
    assert set(found) == {"global", *meant}
    known = set(adopting.sections_of_samba(smb.render(EVERYTHING))["photos"]) | {
        "write list",
        "read list",
        "valid users",
    }
    for name, (path, part) in meant.items():
        assert found[name]["path"] == " ".join(path.split())
        assert set(found[name]) <= known, set(found[name]) - known
        assert found[name]["preexec close"] == "yes"
        assert (found[name]["guest ok"] == "yes") == (part.guest != "no")
        let_in = [*found[name].get("write list", "").split(), *found[name].get("read list", "").split()]
        assert set(let_in) <= {"anna", "ben", "@family"}
        assert found[name].get("valid users", "") == ("" if part.guest != "no" else " ".join(let_in) or smb.NOBODY)


@given(facts=BOXES)
@settings(max_examples=150)
def test_exports_are_of_the_folders_and_hosts_that_were_meant(facts):
    meant = {(dataset.mountpoint, host) for dataset, part in nfs.exported(facts) for host in part.hosts}
    text = nfs.render(facts)
    assert {(one.path, one.host) for one in nfs.parse(text)} == meant
    assert {(path, host) for path, hosts in adopting.exports(text).items() for host in hosts} == meant
    for one in nfs.parse(text):
        assert "mountpoint" in one.options
        assert one.host not in {"*", "0.0.0.0/0"}


@given(facts=BOXES)
@settings(max_examples=150)
def test_netatalks_file_holds_the_volumes_that_were_meant_and_no_other_line(facts):
    found = adopting.sections_of_netatalk(afp.render(facts))
    meant = {part.name: dataset.mountpoint for dataset, part in afp.volumes(facts)}
    assert set(found) == {"Global", *meant}
    assert found["Global"] == afp.GLOBAL
    for name, path in meant.items():
        assert found[name]["path"] == " ".join(path.split())
        assert set(found[name]) <= afp.VOLUME
        assert set(found[name]["valid users"].split()) <= {"anna", "ben", "@family", afp.NOBODY}


@given(facts=BOXES)
@settings(max_examples=80)
def test_what_larder_writes_it_reads_back_as_no_change(facts):
    for key, render in (("smb", smb.render), ("nfs", nfs.render), ("afp", afp.render)):
        assert adopting.changes(key, render(facts), facts) == ((), ())


@given(setting=SETTINGS, path=PATHS)
def test_a_setting_is_served_whole_or_not_at_all(setting, path):
    """One hostile field of one protocol takes the others with it: nobody could have made that with Larder."""
    found = asking(0, setting, path)
    decoded = setting_of(found)
    assert decoded is None or setting_of(asking(0, msgspec.to_builtins(decoded), path)) == decoded
    served = {kind: list(wishes(Facts(datasets=(found,)), kind)) for kind in PROTOCOLS}
    assert decoded is not None or not any(served.values())


EVERYTHING = box_of([({"smb": {"name": "photos", "write": ["anna"], "guest": "read", "recycle": True, "exact_case": True, "time_machine": 10**10, "encrypt": True}, "afp": {"name": "photos", "write": ["anna"]}}, "/tank/photos")])  # fmt: skip
