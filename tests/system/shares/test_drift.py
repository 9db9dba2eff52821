"""A hand edit of an owned file: shown, kept until the person decides, then adopted or written over; the system's own
files stay as they are through all of it."""

from __future__ import annotations

import pytest

from tests.system import moving, protocols, sharing
from tests.system.sharing import CONFIG, Client

STATE = "share"


EXPORTS = "/etc/exports.d/larder.exports"
PAGE = "/shares/by-hand/"
OUTSIDE = (
    "find /etc/samba /etc/exports /etc/netatalk /etc/avahi /etc/nsswitch.conf /etc/smartd.conf -type f ! -name "
    "'*larder*' -exec sha256sum {} + | sort"
)


@pytest.fixture(scope="module")
def box(visitor, appliance):
    """A pool with two shares that anna may use, and the checksums of what is not Larder's."""
    sharing.make_pool(appliance, "tank", "photos", "films")
    sharing.make_person(visitor, "anna")
    before = appliance.shell(OUTSIDE)
    for name in ("photos", "films"):
        said = sharing.set_share(visitor, appliance, f"tank/{name}", name=name, write="anna", previous="on", mac="on")
        assert said.startswith("Done."), said
    yield appliance
    assert appliance.shell(OUTSIDE) == before


def edit(box, path: str, old: str, new: str) -> str:
    """Change a file by hand; its new text."""
    before = box.run("cat", path)
    assert old in before
    edited = before.replace(old, new, 1)
    box.put(path, edited)
    return str(edited)


def decide(visitor, key: str, what: str) -> str:
    review = visitor.get(f"{PAGE}{key}/{what}/")
    return str(visitor.ended(visitor.confirm(review), timeout=240))


def copies(box, path: str) -> list[str]:
    return list(box.shell(f"ls {path}.by-hand-* 2>/dev/null || true").split())


def test_an_edit_that_settings_cannot_say_is_shown_survives_and_can_only_be_written_over(visitor, box, tmp_path):
    edited = edit(box, CONFIG, "[photos]\n", "[photos]\n   max connections = 3\n")
    page = visitor.wait_until(
        PAGE, "+ max connections = 3", "It cannot be adopted", "max connections = 3” of photos", timeout=120
    )
    assert f"{PAGE}smb/adopt/" not in page.text
    visitor.wait_until("/folders/", f"{CONFIG} was changed by hand.")

    # Larder writes nothing, whatever is asked of it, and says why.
    said = sharing.set_share(visitor, box, "tank/films", name="cinema", write="anna")
    assert "changed by hand" in said, said
    assert box.run("cat", CONFIG) == edited
    Client(box, tmp_path, "anna").done("films", "ls")

    said = decide(visitor, "smb", "overwrite")
    assert said.startswith("Done."), said
    assert "max connections" not in box.run("cat", CONFIG)
    (copy,) = copies(box, CONFIG)
    assert box.run("cat", copy) == edited
    visitor.wait_until(PAGE, "No manual changes", copy, timeout=90)
    said = sharing.set_share(visitor, box, "tank/films", name="films", write="anna", previous="on", mac="on")
    assert said.startswith("Done."), said
    assert "max connections" not in box.run("testparm", "-s")


def test_an_edit_that_settings_can_say_is_adopted_and_clients_see_it(visitor, box, tmp_path):
    edit(box, CONFIG, "[films]\n", "# the children's\n[cinema]\n")
    visitor.wait_until(PAGE, "Adopt it", "Share tank/films over SMB", timeout=120)
    said = decide(visitor, "smb", "adopt")
    assert said.startswith("Done."), said
    assert '"name":"cinema"' in moving.prop(box, "larder:share", "tank/films")
    anna = Client(box, tmp_path, "anna")
    anna.done("cinema", "ls")
    assert anna.tried("films", "ls")[0] != 0
    text = box.run("cat", CONFIG)
    assert "[cinema]" in text
    assert "children" not in text
    assert len(copies(box, CONFIG)) == 2
    said = sharing.set_share(visitor, box, "tank/films", name="films", write="anna", previous="on", mac="on")
    assert said.startswith("Done."), said


def test_exports_are_adopted_too_and_another_folder_comes_on(visitor, box):
    protocols.share(
        box, visitor, "tank/photos", smb={"name": "photos", "write": ["anna"]}, nfs={"hosts": ["10.0.2.0/24"]}
    )
    line = next(line for line in box.run("cat", EXPORTS).splitlines() if line.startswith('"/tank/photos"'))
    box.put(EXPORTS, box.run("cat", EXPORTS) + line.replace("/tank/photos", "/tank/films") + "\n")
    visitor.wait_until(PAGE, "Share tank/films over NFS", timeout=120)
    said = decide(visitor, "nfs", "adopt")
    assert said.startswith("Done."), said
    assert "/tank/films" in box.run("exportfs", "-s")
    assert "nfs" in moving.prop(box, "larder:share", "tank/films")


def test_an_edited_announcement_can_be_written_over(visitor, box):
    path = "/etc/avahi/services/larder.service"
    edit(box, path, "<port>445</port>", "<port>4455</port>")
    visitor.wait_until(PAGE, "4455", "follows from what is shared", timeout=120)
    said = decide(visitor, "larder.service", "overwrite")
    assert said.startswith("Done."), said
    assert "4455" not in box.run("cat", path)
    assert copies(box, path)


def test_a_file_changed_again_between_looking_and_deciding_is_left_alone(visitor, box):
    edit(box, CONFIG, "[photos]\n", "[photos]\n   max connections = 4\n")
    visitor.wait_until(PAGE, "max connections = 4", timeout=120)
    review = visitor.get(f"{PAGE}smb/overwrite/")
    later = edit(box, CONFIG, "max connections = 4", "max connections = 5")
    said = visitor.ended(visitor.confirm(review), timeout=240)
    assert "changed again since you looked" in said, said
    assert box.run("cat", CONFIG) == later
    visitor.wait_until(PAGE, "max connections = 5", timeout=120)
    assert decide(visitor, "smb", "overwrite").startswith("Done.")
