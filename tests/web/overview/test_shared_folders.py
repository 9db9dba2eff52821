"""The overview says over which protocol each folder is shared."""

from __future__ import annotations

from tests.unit.made import shared
from tests.web import rows
from tests.web.reading import text_of


def test_each_switch_names_its_protocol(web, calm):
    box = rows.recorded_box()
    nfs = '{"nfs":{"hosts":["192.168.1.0/24"]}}'
    rows.put(pools=[box], datasets=[shared(), shared("tank/films", guid=9, share=nfs)], shares=[])
    said = text_of(web.get("/"))
    assert "tank/photos Windows and Mac (SMB) not served" in said
    assert "tank/films Linux (NFS) not served" in said
