"""What a copy remembers of its original: only what is safe to have again, whoever wrote it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from appliance.backups.copies import properties_of
from appliance.backups.origin import LONGEST, Origin, origin_of, parse_origin
from appliance.datasets.access_note import AccessNote, encode_note
from appliance.facts.datasets import Dataset, Property
from tests.unit.made import dataset

NOTE = AccessNote(guid=5, people={"anna": "change"}, done=True, box="b", numbers=(1000,), people_gid=100)
PHOTOS = dataset(
    "tank/photos",
    guid=5,
    access=encode_note(NOTE),
    access_source="local",
    properties={
        "recordsize": Property("1048576", "local"),
        "compression": Property("zstd", "local"),
        "sync": Property("disabled", "local"),
        "atime": Property("off", "inherited"),
        "quota": Property("1000", "local"),
        "larder:preset": Property("photos", "local"),
    },
)


def copy_with(text: str, source: str = "local") -> Dataset:
    return dataset("safe/backups/photos", properties={"larder:origin": Property(text, source)})


def test_copy_remembers_name_settings_and_access_and_nothing_that_could_harm():
    found = origin_of(PHOTOS)
    assert found.name == "tank/photos"
    assert found.settings == {"recordsize": "1048576", "compression": "zstd", "larder:preset": "photos"}
    assert found.access == NOTE
    assert properties_of(PHOTOS)["larder:origin"] == found.text
    assert parse_origin(copy_with(found.text)) == found


def test_note_of_another_dataset_is_not_remembered():
    assert origin_of(replace(PHOTOS, guid=6)).access is None


def test_what_is_too_long_for_a_property_leaves_the_list_of_users_out():
    many = AccessNote(guid=5, people={f"somebody-with-a-name-{n}": "change" for n in range(99)}, numbers=(2**60,) * 300)
    found = origin_of(replace(PHOTOS, access=encode_note(many)))
    assert found.access is None and len(found.text) < LONGEST


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"name":"../etc"}',
        '{"name":"tank/a","settings":{"mountpoint":"/etc"}}',
        '{"name":"tank/a","settings":{"sync":"disabled"}}',
        '{"name":"tank/a","settings":{"recordsize":"3"}}',
        '{"name":"tank/a","settings":{"compression":"lz4 setuid=on"}}',
        '{"name":"tank/a","access":{"guid":1,"people":{"root":"change"}}}',
    ],
)
def test_what_larder_could_not_have_written_says_nothing(text):
    assert parse_origin(copy_with(text)) is None


def test_what_is_inherited_or_received_is_not_the_copys_own():
    text = Origin(name="tank/photos").text
    assert parse_origin(copy_with(text, "inherited")) is None
    assert parse_origin(copy_with(text, "received")) is None
    assert parse_origin(dataset("safe/backups/photos")) is None
