"""Names of automatic snapshots, and whether Samba's shadow_copy2 reads their moment as Larder wrote it."""

from __future__ import annotations

import configparser
import re
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from appliance import snapshot_names
from appliance.shares import smb
from appliance.shares.settings import ShareSetting, Smb
from tests.unit.made import ANNA, box, shared

AT = datetime(2026, 11, 21, 13, 5, 9, tzinfo=ZoneInfo("Europe/Berlin"))


@pytest.fixture(scope="module")
def shadow() -> dict[str, str]:
    """The settings of shadow_copy2 in the rendered section of a share with previous versions."""
    share = ShareSetting(smb=Smb(name="photos", write=("anna",), previous=True)).text()
    text = smb.render_config(box(datasets=(shared(share=share),), accounts=(ANNA,)))
    parser = configparser.RawConfigParser(delimiters=("=",), comment_prefixes=("#",))
    parser.read_string("\n".join(line.strip() for line in text.splitlines()))
    return {key: value for key, value in parser["photos"].items() if key.startswith("shadow:")}


def moment_in(name: str, shadow: dict[str, str]) -> datetime | None:
    """The moment that shadow_copy2 reads from a snapshot's name (vfs_shadow_copy2.c); None if it hides the snapshot."""
    at = name.find(shadow["shadow:delimiter"])
    if at < 0 or not re.search(shadow["shadow:snapprefix"], name[:at]):
        return None
    try:
        return datetime.strptime(name[at:], shadow["shadow:format"]).replace(tzinfo=UTC)
    except ValueError:
        return None


def test_name_holds_moment_in_utc():
    name = snapshot_names.name_for("hourly", AT)
    assert name == "larder-hourly-2026.11.21-12.05.09"
    match = snapshot_names.PATTERN.fullmatch(name)
    assert match
    assert match["at"] == snapshot_names.format_moment(AT) == "2026.11.21-12.05.09"


def test_coarsest_grain_names_snapshot():
    assert snapshot_names.coarsest_grain(("hourly", "monthly", "daily")) == "monthly"


@pytest.mark.parametrize("word", [*snapshot_names.GRAINS, snapshot_names.BY_HAND, snapshot_names.BEFORE])
def test_samba_reads_moment_of_every_name_that_larder_gives(shadow, word):
    assert moment_in(snapshot_names.name_for(word, AT), shadow) == AT


@pytest.mark.parametrize(
    "name", ["by-hand", "before-2026", "larder-hourly", "2026.11.21-12.05.09", "other-daily-2026.11.21-12.05.09"]
)
def test_samba_hides_snapshots_without_moment(shadow, name):
    assert moment_in(name, shadow) is None


def test_samba_settings_are_those_of_names(shadow):
    assert smb.PREVIOUS_VERSIONS.items() <= shadow.items()
