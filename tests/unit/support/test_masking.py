from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.support.masking import MASK, Masker

KNOWN = {
    "pool": ["tank", "attic"],
    "folder": ["photos", "2025", "My Films"],
    "user": ["anna"],
    "host": ["nas", "larder"],
    "serial": ["WD-WCAZA0000003"],
}


def mask(text: str) -> str:
    return Masker(KNOWN, addresses=True).mask(text)


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("zfs create tank/photos/2025", "zfs create <pool-2>/<folder-3>/<folder-1>"),
        ("TANK and Tank are one, tanker is not", "<pool-2> and <pool-2> are one, tanker is not"),
        ("in 2025 something happened", "in 2025 something happened"),
        ("/tank/My\\040Films, tank/My%20Films", "/<pool-2>/<folder-2>, <pool-2>/<folder-2>"),
        ("tank/My Films is full", "<pool-2>/<folder-2> is full"),
        ("/tank/photos/private/letter.pdf: cannot be read", "/<pool-2>/<folder-3>/<path-1>/<path-2>: cannot be read"),
        ("tank/photos@before-the-move", "<pool-2>/<folder-3>@<snapshot-1>"),
        ("tank@larder-daily-2026.11.21-12.00.00", "<pool-2>@larder-daily-2026.11.21-12.00.00"),
        ("ata-WDC_WD20EARS-00MVWB0_WD-WCAZA0000003-part1", "ata-WDC_WD20EARS-00MVWB0_<serial-1>-part1"),
        (
            "WWN 0x50014ee206b8f7a1, LU WWN Device Id: 5 0014ee 206b8f7a1",
            "WWN <serial-2>, LU WWN Device Id: <serial-2>",
        ),
        ("from 192.168.1.7 port 4711, then 192.168.1.7", "from <address-1> port 4711, then <address-1>"),
        ("fd00::5/64 and FD00:0::5 and ::1", "<address-1>/64 and <address-1> and ::1"),
        ("link 52:54:00:12:34:56", "link <mac-1>"),
        ("at 12:34:56 on 127.0.0.1, zfs-2.3.9", "at 12:34:56 on 127.0.0.1, zfs-2.3.9"),
        ("anna@example.org wrote to anna", "<mail-1> wrote to <user-1>"),
        ("larder-web on nas.local", "larder-web on <host-1>.local"),
    ],
)
def test_names_are_masked_and_the_rest_stays(text, masked):
    assert mask(text) == masked


def test_nothing_is_masked_that_was_not_chosen():
    text = "tank on 192.168.1.7, 52:54:00:12:34:56, 0x50014ee206b8f7a1, anna@example.org"
    assert Masker({}, addresses=False).mask(text) == text


def test_a_name_of_two_kinds_has_one_mask():
    masker = Masker({"pool": ["photos"], "folder": ["photos"]}, addresses=False)
    assert masker.mask("photos/photos") == "<pool-1>/<pool-1>"


names = st.from_regex(r"[A-Za-z][A-Za-z0-9_.-]{1,12}", fullmatch=True)
serials = st.from_regex(r"[A-Z0-9-]{6,14}", fullmatch=True)
around = st.text(alphabet=st.sampled_from(" \n/@:;,'\"()[]<>-_.=#%|0aZé"), max_size=6)
everything = st.fixed_dictionaries(
    {
        "pool": st.lists(names, max_size=3),
        "folder": st.lists(names, max_size=3),
        "user": st.lists(names, max_size=3),
        "serial": st.lists(serials, max_size=3),
    }
)


@given(known=everything, parts=st.lists(st.tuples(around, st.integers(0, 11)), max_size=12))
def test_no_known_name_is_left_as_a_word_whatever_stands_around_it(known, parts):
    values = [value for kind in known.values() for value in kind]
    text = "".join(f"{before} {values[at % len(values)]} " for before, at in parts) if values else ""
    masked = Masker(known, addresses=True).mask(text)
    rest = MASK.sub("<>", masked)
    for value in values:
        assert not re.search(rf"(?<![^\W_]){re.escape(value)}(?![^\W_])", rest, re.IGNORECASE), (value, masked)
    for serial in known["serial"]:
        assert serial.casefold() not in rest.casefold()


@given(known=everything)
def test_different_names_have_different_masks_and_the_same_one_always_the_same(known):
    masker = Masker(known, addresses=True)
    values = {value.casefold() for kind in known.values() for value in kind}
    masks = {value: masker.mask(value) for value in values}
    assert {value: masker.mask(f"x {value} y").split()[1] for value in values} == masks
    assert len(set(masks.values())) == len(values)


@given(text=st.text(max_size=200))
def test_masking_twice_changes_nothing_more(text):
    masker = Masker(KNOWN, addresses=True)
    once = masker.mask(text)
    assert masker.mask(once) == once


@given(address=st.ip_addresses().filter(lambda one: not one.is_loopback and not one.is_unspecified))
def test_every_address_is_masked(address):
    masked = Masker({}, addresses=True).mask(f"from {address} port 5 and {address}/24")
    if str(address).startswith("255.255.255.255"):
        return
    assert str(address) not in masked
    assert masked.count("<address-1>") == 2


@pytest.mark.parametrize("seed", ["/a", "tank/", ":", "1.", "a@", "0x5", "<", "tank@"])
def test_long_odd_lines_end(seed):
    assert mask(seed * 20_000)
