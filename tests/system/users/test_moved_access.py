"""Private folders after their disks moved: the page says what the files really allow on a box with other numbers."""

from __future__ import annotations

import pytest

from tests.system import moving, sharing
from tests.system.persons import done, make
from tests.visitor import create_pool, disk_paths

WORD = "a long word for shares"


def become_another_box(appliance) -> None:
    """A new system disk in the same box: no users, no record of used numbers, another machine id."""
    appliance.shell(
        "for who in anna ben; do smbpasswd -x $who; userdel $who; done; rm -f /var/lib/larder-agent/given-number-*; "
        "tr -d - < /proc/sys/kernel/random/uuid > /etc/machine-id"
    )


@pytest.fixture(scope="module")
def moved(appliance, visitor):
    """Two private home folders of one box, whose pool moves to another where ben was created before anna."""
    create_pool(appliance, "-O", "acltype=posix", "-O", "xattr=sa", "tank", "mirror", *disk_paths(appliance, 1, 2))
    appliance.shell("zfs create tank/homes")
    visitor.wait_until("/folders/", "tank/homes")
    for name in ("anna", "ben"):
        make(visitor, name, WORD, home="tank/homes")
        appliance.run(
            "setpriv", f"--reuid={name}", "--regid=larder-people", "--init-groups", "touch", f"/tank/homes/{name}/mine"
        )
    guid = moving.guid_of(appliance, "tank")
    moving.done(visitor, moving.end_review(visitor, guid, "export"))
    become_another_box(appliance)
    visitor.wait_until("/users/", without=("anna", "ben"), timeout=120)
    for name in ("ben", "anna"):
        make(visitor, name, WORD)
    moving.look(visitor, "Import tank")
    assert moving.bring_in(visitor, guid, name="tank").startswith("Done.")
    visitor.wait_until("/folders/", "tank/homes/anna", "tank/homes/ben")
    return appliance


def reads(appliance, name: str, place: str) -> bool:
    argv = ["setpriv", f"--reuid={name}", "--regid=larder-people", "--init-groups", "test", "-r", place]
    return appliance.shell(f"{' '.join(argv)} && echo yes || echo no").strip() == "yes"


def page_of(appliance, dataset: str) -> str:
    return f"/folders/{sharing.key_of(appliance, dataset)}/"


def test_the_page_says_that_the_note_is_not_valid_and_whom_the_files_let_in(moved, visitor):
    assert reads(moved, "ben", "/tank/homes/anna"), "the numbers were not given in the other order"
    assert not reads(moved, "anna", "/tank/homes/anna")
    for home, let_in in (("anna", "ben"), ("ben", "anna")):
        said = f"Right now the files let in: {let_in} (read and change)."
        visitor.wait_until(page_of(moved, f"tank/homes/{home}"), "From another box, not valid here.", said)


def test_set_anew_the_page_and_the_files_agree(moved, visitor):
    for home, other in (("anna", "ben"), ("ben", "anna")):
        path = f"{page_of(moved, f'tank/homes/{home}')}access/"
        page = visitor.get(path)
        answers = {"everybody": "none", f"person-{home}": "change", f"person-{other}": ""}
        review = visitor.send(path, {**page.hidden(), **answers})
        done(visitor, visitor.confirm(review))
        visitor.wait_until(page_of(moved, f"tank/homes/{home}"), without=("From another box",))
        for place in (f"/tank/homes/{home}", f"/tank/homes/{home}/mine"):
            assert reads(moved, home, place)
            assert not reads(moved, other, place)
