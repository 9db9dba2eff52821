"""What ``zfs send -nvt`` says of a token is read as it is; whatever is missing makes the token fit nothing."""

from __future__ import annotations

from msgspec.structs import replace

from appliance.backups.copies import parse_token
from appliance.backups.match import Copy, Point, is_usable
from tests.unit.made import recorded_text

TEXT = recorded_text("zfs-send-token-2.3.9.txt")
GUID = 0x5831C608A5EA682B
POINTS = {GUID: Point("tank/rec@one", GUID)}
COPY = Copy("safe/rec", exists=True)


def test_recorded_token_fits_its_snapshot():
    token = parse_token("1-abc", TEXT)
    assert (token.to_guid, token.to_name, token.from_guid, token.raw) == (GUID, "tank/rec@one", 0, False)
    assert is_usable(token, "tank/rec", POINTS, False, COPY)


def test_token_of_a_snapshot_that_is_gone_fits_nothing():
    # OpenZFS 2.3.9 prints the contents also then, after its complaint, and ends with status 255.
    said = f"cannot resume send: 'tank/rec@one' used in the initial send no longer exists\n{TEXT}"
    assert not is_usable(parse_token("1-abc", said), "tank/rec", {}, False, COPY)


def test_token_that_continues_and_is_raw_says_so():
    # Made up: the recorded one with the two lines that such a token has.
    token = parse_token("1-abc", TEXT.replace("\ttoguid", "\tfromguid = 0x7\n\trawok = 1\n\ttoguid"))
    assert (token.from_guid, token.raw) == (7, True)
    assert is_usable(token, "tank/rec", POINTS, True, replace(COPY, guids=(7,)))


def test_text_that_says_nothing_fits_nothing():
    for said in ("", "cannot resume send: resume token is corrupt", "toguid = x\ntoname = tank/rec@one"):
        assert not is_usable(parse_token("1-abc", said), "tank/rec", POINTS, False, COPY)
