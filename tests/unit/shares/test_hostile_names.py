"""Files of the daemons, rendered from names and hosts over hostile alphabets: what comes out is
what was meant, or nothing is.

The system tests have the daemons themselves read such files back (``tests/system/shares/test_fuzz.py``).
"""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from appliance.facts.box import Facts
from appliance.facts.datasets import Dataset
from appliance.facts.sharing import Account, Group
from appliance.shares import afp, nfs, smb
from appliance.shares.drift import parse
from appliance.shares.settings import NOBODY, PROTOCOLS, setting_of, wanted_shares
from tests.unit.made import dataset

HOSTILE = st.text(st.sampled_from(list("aZ9 -_.@[]%$;#\\\"'=/*:,()!\n\r\t\x00\x7f\x85\u2028\u202eäаß—🙂")), max_size=24)
PLAIN = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,20}[A-Za-z0-9]", fullmatch=True)
NAMES = st.one_of(
    PLAIN, PLAIN, PLAIN, HOSTILE, st.sampled_from(["global", "homes", "GLOBAL", "print$", "IPC$", "Photos", "photos"])
)
KNOWN_HOSTS = ["192.168.1.0/24", "10.0.0.7", "172.16.0.0/12", "imac.local", "fd00::/8", "fe80::1"]
FLAG = st.booleans()
RARELY = st.integers(0, 9).map(lambda dice: dice == 0)


@st.composite
def people(draw: st.DrawFn) -> dict[str, list[str]]:
    """Who changes and who reads: mostly as a form would have it, now and then somebody twice or a hostile name."""
    known = draw(st.permutations(["anna", "ben", "@family", "gone"]))
    at, until = sorted((draw(st.integers(0, 4)), draw(st.integers(0, 4))))
    found = {"write": known[:at], "read": known[at:until]}
    if draw(RARELY):
        found[draw(st.sampled_from(["write", "read"]))].append(draw(st.one_of(HOSTILE, st.just("anna"))))
    return found


@st.composite
def hosts(draw: st.DrawFn) -> list[str]:
    found = draw(st.lists(st.sampled_from(KNOWN_HOSTS), min_size=1, max_size=4, unique=True))
    return (
        [*found, draw(st.one_of(HOSTILE, st.sampled_from(["*", "0.0.0.0/0", "@group", "a(rw)"])))]
        if draw(RARELY)
        else found
    )


@st.composite
def shared_settings(draw: st.DrawFn) -> dict[str, Any]:
    """What a folder asks for, of any protocols."""
    found: dict[str, Any] = {}
    size = st.one_of(st.just(0), st.integers(10**9, 10**15), st.integers(-5, 2**63) if draw(RARELY) else st.just(0))
    if draw(FLAG):
        flags = {name: draw(FLAG) for name in ("hidden", "recycle", "exact_case", "mac", "previous", "encrypt")}
        guest = draw(st.sampled_from(["no", "no", "read", "write", "all" if draw(RARELY) else "no"]))
        found["smb"] = {"name": draw(NAMES), **draw(people()), **flags, "guest": guest, "time_machine": draw(size)}
    if draw(FLAG):
        found["nfs"] = {"hosts": draw(hosts()), **{name: draw(FLAG) for name in ("write", "root", "sync")}}
    if draw(FLAG):
        found["afp"] = {"name": draw(NAMES), **draw(people()), "time_machine": draw(size)}
    return found


SETTINGS = shared_settings()
ODD = st.text(st.sampled_from(list("aZ9 -_.:@+,äß")), min_size=1, max_size=16).map(lambda text: text.strip() or "a")
PATHS = st.one_of(
    ODD.map(lambda text: f"/tank/{text}"),
    ODD.map(lambda text: f"/tank/{text}"),
    st.sampled_from(
        [
            "/tank/photos",
            "/tank/with space",
            "/tank/with  two",
            "/tank/Fotos ä",
            "/",
            "none",
            "legacy",
            "/etc",
            "/tank/../etc",
        ]
    ),
    HOSTILE.map(lambda text: f"/tank/{text}"),
)


def asking(number: int, setting: dict[str, Any], path: str) -> Dataset:
    share = msgspec.json.encode(setting).decode()
    return dataset(f"tank/f{number}", mountpoint=path, share=share, share_source="local")


def box_of(parts: list[tuple[dict[str, Any], str]]) -> Facts:
    """A box whose folders ask for these, as properties on foreign disks would; two at most have one path."""
    datasets = tuple(asking(number, *part) for number, part in enumerate(parts))
    unique = {one.mountpoint: one for one in datasets}
    people = (Account("anna", 1001), Account("ben", 1002))
    return Facts(datasets=tuple(unique.values()), accounts=people, groups=(Group("family", 20000, ("anna",)),))


BOXES = st.lists(st.tuples(SETTINGS, PATHS), min_size=1, max_size=4).map(box_of)


@given(facts=BOXES)
@settings(max_examples=150)
def test_sambas_file_holds_the_shares_that_were_meant_and_no_other_line(facts):
    found = parse.sections_of_samba(smb.render_config(facts))
    meant = {part.name: (dataset.mountpoint, part) for dataset, part in smb.samba_shares(facts)}
    assert set(found) == {"global", *meant}
    known = set(parse.sections_of_samba(smb.render_config(EVERYTHING))["photos"]) | {
        "write list",
        "read list",
        "valid users",
    }
    for name, (path, part) in meant.items():
        assert found[name]["path"] == path
        assert set(found[name]) <= known, set(found[name]) - known
        assert found[name]["preexec close"] == "yes"
        assert (found[name]["guest ok"] == "yes") == (part.guest != "no")
        let_in = [*found[name].get("write list", "").split(), *found[name].get("read list", "").split()]
        assert set(let_in) <= {"anna", "ben", "@family"}
        assert found[name].get("valid users", "") == ("" if part.guest != "no" else " ".join(let_in) or NOBODY)


@given(facts=BOXES)
@settings(max_examples=150)
def test_exports_are_of_the_folders_and_hosts_that_were_meant(facts):
    meant = {(dataset.mountpoint, host) for dataset, part in nfs.wanted_exports(facts) for host in part.hosts}
    text = nfs.render_exports(facts)
    assert {(one.path, one.host) for one in nfs.parse_exports(text)} == meant
    assert {(path, host) for path, hosts in parse.parse_exports(text).items() for host in hosts} == meant
    for one in nfs.parse_exports(text):
        assert "mountpoint" in one.options
        assert one.host not in {"*", "0.0.0.0/0"}


@given(facts=BOXES)
@settings(max_examples=150)
def test_netatalks_file_holds_the_volumes_that_were_meant_and_no_other_line(facts):
    found = parse.sections_of_netatalk(afp.render_config(facts))
    meant = {part.name: dataset.mountpoint for dataset, part in afp.wanted_volumes(facts)}
    assert set(found) == {"Global", *meant}
    assert found["Global"] == afp.GLOBAL
    for name, path in meant.items():
        assert found[name]["path"] == path
        assert set(found[name]) <= afp.VOLUME
        assert set(found[name]["valid users"].split()) <= {"anna", "ben", "@family", afp.NOBODY}


@given(facts=BOXES)
@settings(max_examples=80)
def test_what_larder_writes_it_reads_back_as_no_change(facts):
    for key, render in (("smb", smb.render_config), ("nfs", nfs.render_exports), ("afp", afp.render_config)):
        assert parse.parse_changes(key, render(facts), facts) == ((), ())


@given(setting=SETTINGS, path=PATHS)
def test_a_setting_is_served_whole_or_not_at_all(setting, path):
    """One hostile field of one protocol takes the others with it: nobody could have made that with Larder."""
    found = asking(0, setting, path)
    decoded = setting_of(found)
    assert decoded is None or setting_of(asking(0, msgspec.to_builtins(decoded), path)) == decoded
    served = {kind: list(wanted_shares(Facts(datasets=(found,)), kind)) for kind in PROTOCOLS}
    assert decoded is not None or not any(served.values())


EVERYTHING = box_of(
    [
        (
            {
                "smb": {
                    "name": "photos",
                    "write": ["anna"],
                    "guest": "read",
                    "recycle": True,
                    "exact_case": True,
                    "time_machine": 10**10,
                    "encrypt": True,
                },
                "afp": {"name": "photos", "write": ["anna"]},
            },
            "/tank/photos",
        )
    ]
)
