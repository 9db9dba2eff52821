"""The pages of actions on a folder."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from appliance.datasets.dataset_detail import MOST_NAMED
from appliance.facts.copy_mark import CopyMark
from appliance.facts.datasets import Dataset, DatasetDetail, Property, SpaceUse
from appliance.formatting import size_text
from tests.reasons import codes_of_form, codes_on_page
from tests.unit.made import dataset
from tests.unit.pools.shapes import group, leaf
from tests.web import rows
from tests.web.reading import Page, assert_nothing_inline, text_of
from tests.web.system.test_queries import queries
from web.datasets.actions import list_actions, locked_roots
from web.inventory.dataset_models import DatasetDetailRow, DatasetRow
from web.jobs.models import Job

TANK, PHOTOS = (
    dataset("tank"),
    dataset(
        "tank/photos",
        used_by_data=2**20,
        properties={"atime": Property("on", "local"), "compression": Property("lz4", "inherited", "tank")},
    ),
)
VOLUME = dataset("tank/disk1", kind="volume", mounted=False, mountpoint="", volsize=2**30)
VAULT = dataset(
    "tank/vault",
    encryption="aes-256-gcm",
    key_status="available",
    key_format="passphrase",
    encryption_root="tank/vault",
)
AT = f"/folders/{PHOTOS.guid}/"


@pytest.fixture
def folders(calm) -> None:
    rows.put(
        pools=[rows.pool_of("tank", 1000)],
        datasets=[TANK, PHOTOS, VOLUME, VAULT],
        accounts=["anna"],
        shares=[],
        disks=[],
    )


def known(**changes: object) -> None:
    import msgspec

    detail = DatasetDetail(**{"name": "tank/photos", "guid": PHOTOS.guid, **changes})  # type: ignore[arg-type]
    DatasetDetailRow.objects.create(key=str(detail.guid), name=detail.name, facts=msgspec.json.encode(detail).decode())


def operation() -> dict[str, object]:
    return json.loads(Job.objects.get().operation)


def test_folder_page_shows_space_bar_and_possible_actions(web, folders):
    response = web.get(AT)
    assert_nothing_inline(response)
    assert "Where the space goes: Files" in response.content.decode()
    text = text_of(response)
    assert "Unmount" in text
    assert "Destroy" in text
    assert "Make it independent" not in text
    assert "Destroy" not in text_of(web.get(f"/folders/{TANK.guid}/"))


def test_settings_show_sources_and_only_own_values_can_be_inherited(web, folders):
    page = Page(web.get(f"{AT}settings/"))
    assert "from tank" in page.text
    assert "set here" in page.text
    assert [form.action for form in page.forms if "inherit" in form.action] == [f"{AT}settings/atime/inherit/"]
    assert web.post(f"{AT}settings/atime/inherit/")["Location"] == f"{AT}settings/"
    assert operation()["kind"] == "inherit-dataset-property"
    refused = web.post(f"{AT}settings/compression/inherit/")
    assert (refused.status_code, codes_on_page(refused)) == (409, ["setting-inherited-already"])


def test_size_accepts_units(web, folders):
    assert web.post(f"{AT}settings/quota/", {"value": "1.5 GiB"}).status_code == 302
    assert operation()["value"] == str(3 * 2**29)


@pytest.mark.parametrize("value", ["much", "-1", "1 ZiB", "5 %", "1e9"])
def test_invalid_size_is_refused_at_its_field(web, folders, value):
    response = web.post(f"{AT}settings/quota/", {"value": value})
    assert response.status_code == 400
    assert Page(response).field_error("id_value")
    assert not Job.objects.exists()


def test_disabling_sync_is_reviewed_first(web, folders):
    response = web.post(f"{AT}settings/sync/", {"value": "disabled"})
    assert "A power cut loses" in text_of(response)
    assert not Job.objects.exists()


def test_unknown_setting_is_not_found(web, folders):
    assert [web.get(f"{AT}settings/{name}/").status_code for name in ("mountpoint", "exec", "x")] == [404] * 3


def test_rename_leads_to_review_and_refuses_wrong_name(web, folders):
    review = web.get(f"{AT}rename/", {"answered": 1, "parent": "tank", "name": "pictures"})
    assert "zfs rename -u -- tank/photos tank/pictures" in text_of(review)
    wrong = web.get(f"{AT}rename/", {"answered": 1, "parent": "tank", "name": "a\nb"})
    assert wrong.status_code == 400
    assert codes_of_form(wrong, "name") == ["invisible-characters"]


def test_destroy_reads_details_then_reviews(web, folders, calm):
    assert "Reading what would be destroyed" in text_of(web.get(f"{AT}destroy/"))
    assert ("workers.read_dataset", str(PHOTOS.guid)) in calm
    known(snapshots=3, named=("tank/photos@a",))
    assert "Snapshots 3 Space freed" in text_of(web.get(f"{AT}destroy/"))
    review = web.get(f"{AT}destroy/", {"review": 1})
    assert "the folder tank/photos" in text_of(review)
    form = Page(review).form("/jobs/confirm/").data
    assert web.post("/jobs/confirm/", {**form, "typed": "tank"}).status_code == 400
    assert web.post("/jobs/confirm/", {**form, "typed": "tank/photos"}).status_code == 302
    assert operation() == {"kind": "destroy-dataset", "dataset": "tank/photos", "guid": PHOTOS.guid, "clones": False}


def test_destroy_page_shows_holds_and_clones(web, folders):
    known(held=("tank/photos@kept",), clones=("tank/disk1",))
    text = text_of(web.get(f"{AT}destroy/"))
    assert "tank/photos@kept" in text
    assert "Make tank/disk1 independent" in text
    refused = web.get(f"{AT}destroy/", {"review": 1})
    assert (refused.status_code, codes_on_page(refused)) == (409, ["clones-depend-on-dataset", "snapshots-protected"])


def test_destroy_page_counts_what_the_clones_use_once(web, folders):
    clones = [dataset("tank/copy", used=2**30), dataset("tank/copy/sub", used=2**29)]
    rows.put(datasets=[TANK, replace(PHOTOS, used=2**31), *clones])
    known(clones=("tank/copy", "tank/copy/sub"))
    assert f"Space freed {size_text(2**31 + 2**30)}" in text_of(web.get(f"{AT}destroy/"))


def test_destroy_page_says_at_least_where_the_space_of_a_clone_is_not_known(web, folders):
    known(clones=("tank/elsewhere",))
    assert f"Space freed at least {size_text(PHOTOS.used)}" in text_of(web.get(f"{AT}destroy/"))


def test_destroy_page_says_at_least_where_the_listing_of_protected_snapshots_ended(web, folders):
    known(held=tuple(f"tank/photos@s{number}" for number in range(MOST_NAMED)))
    assert "At least 40 snapshots protected from deletion." in text_of(web.get(f"{AT}destroy/"))


def test_replaced_folder_is_not_destroyed(web, folders):
    known()
    form = Page(web.get(f"{AT}destroy/", {"review": 1})).form("/jobs/confirm/").data
    rows.put(datasets=[TANK, replace(PHOTOS, guid=5)])
    assert web.post("/jobs/confirm/", {**form, "typed": "tank/photos"}).status_code == 409
    assert not Job.objects.exists()


def test_space_by_user_is_listed_and_can_be_limited(web, folders):
    known(uses=(SpaceUse("user", "<b>anna</b>", 2**30, 2**31),))
    response = web.get(f"{AT}space/")
    assert size_text(2**30) in text_of(response)
    assert b"<b>anna" not in response.content
    assert web.post(f"{AT}space/", {"of": "user", "who": "anna", "size": "5 GiB"}).status_code == 302
    assert operation()["size"] == 5 * 2**30


def test_key_page_offers_possible_actions(web, folders):
    at = f"/folders/{VAULT.guid}/key/"
    assert "Somebody who steals the whole box" in text_of(web.get(at))
    assert 'name="secret"' in web.get(f"{at}keep/").content.decode()
    new = web.get(f"{at}file/").content.decode()
    assert "/pools/new/key/tank-vault/" in new
    assert web.get("/pools/new/key/tank-vault/")["Content-Disposition"] == 'attachment; filename="tank-vault.key"'
    assert web.get(f"{AT}key/").status_code == 404


def test_folder_with_own_key_is_reviewed_for_secret(web, folders):
    response = web.post(
        "/folders/new/", {"parent": "tank", "name": "safe", "preset": "general", "key": "passphrase", "limit": ""}
    )
    assert "New passphrase" in text_of(response)
    assert not Job.objects.exists()


def test_volumes_are_listed_created_and_grown(web, folders):
    assert "tank/disk1" in text_of(web.get("/folders/volumes/"))
    answers = {"parent": "tank", "name": "disk2", "size": "10 GiB", "block": "16384", "thin": "on"}
    assert web.post("/folders/volumes/new/", answers).status_code == 302
    assert operation()["size"] == 10 * 2**30
    refused = web.post(f"/folders/{VOLUME.guid}/grow/", {"size": "1 MiB"})
    assert codes_of_form(refused, "size") == ["volume-not-shrunk"]
    assert "volsize=2147483648" in text_of(web.post(f"/folders/{VOLUME.guid}/grow/", {"size": "2 GiB"}))


def test_volume_size_is_rounded_up_to_whole_blocks(web, folders):
    answers = {"parent": "tank", "name": "disk2", "size": "100 GB", "block": "16384", "thin": "on"}
    assert web.post("/folders/volumes/new/", answers).status_code == 302
    assert operation()["size"] == -(-100 * 10**9 // 16384) * 16384
    page = text_of(web.post(f"/folders/{VOLUME.guid}/grow/", {"size": "2 GB"}))
    assert f"volsize={-(-2 * 10**9 // 2**20) * 2**20}" in page  # its block size was not read


def test_folder_pages_make_as_many_queries_in_large_box(web, folders):
    known()
    pages = [AT, f"{AT}settings/", f"{AT}space/", f"{AT}destroy/", f"{AT}rename/", "/folders/volumes/"]
    for page in pages:
        web.get(page)
    small = [len(queries(web, page)) for page in pages]
    rows.put(datasets=[TANK, PHOTOS, VOLUME, VAULT, *(dataset(f"tank/f{number}") for number in range(300))])
    assert DatasetRow.objects.count() == 304
    assert [len(queries(web, page)) for page in pages] == small


def test_mount_is_offered_only_where_there_is_a_mountpoint():
    off = {"mounted": False, "mountpoint": "none", "canmount": "off"}
    found = [
        (dataset("tank/photos", mounted=False), True),
        (dataset("tank/later", mounted=False, canmount="noauto"), True),
        (dataset("tank/backups", copy_of=CopyMark(0, raw=False).text, **off), False),
        (dataset("tank/backups/photos", copy_of=CopyMark(7, raw=False).text, **off), False),
        (dataset("tank/held", mounted=False, canmount="off"), False),
        (dataset("tank/old", mounted=False, mountpoint="legacy"), False),
    ]
    for one, offered in found:
        assert any(act.url.endswith("/mount/") for act in list_actions("1", one)) is offered, one.name


def test_volume_is_not_told_as_a_folder_that_is_not_mounted(web, folders):
    text = text_of(web.get(f"/folders/{VOLUME.guid}/"))
    assert "not mounted" not in text
    assert "Folders below" not in text
    rows.put(
        datasets=[
            TANK,
            replace(VOLUME, encryption="aes-256-gcm", key_status="unavailable", encryption_root="tank/disk1"),
        ]
    )
    text = text_of(web.get(f"/folders/{VOLUME.guid}/"))
    assert "Locked." in text
    assert "Its files" not in text


LOCKED = {"encryption": "aes-256-gcm", "key_status": "unavailable", "key_format": "passphrase", "mounted": False}


def test_unlock_everything_is_offered_on_each_page_of_the_list(web, calm):
    locked = dataset("tank/z", encryption_root="tank/z", **LOCKED)
    rows.put(datasets=[TANK, *(dataset(f"tank/f{number}") for number in range(60)), locked])
    for page in ("/folders/", "/folders/?page=2"):
        assert "Unlock everything" in text_of(web.get(page)), page
    assert "zfs load-key -L prompt -- tank/z" in text_of(web.get("/folders/unlock-all/"))


def test_unlock_everything_is_about_every_locked_folder(web, calm):
    names = [f"tank/z{number:03}" for number in range(205)]
    rows.put(datasets=[TANK, *(dataset(name, encryption_root=name, **LOCKED) for name in names)])
    operation = web.get("/folders/unlock-all/").context["operation"]
    assert list(operation.datasets) == names


def test_unlock_everything_leaves_out_copies_that_were_sent_encrypted(web, calm):
    def copy_of(name: str, guid: int) -> Dataset:
        return dataset(name, encryption_root=name, copy_of=CopyMark(guid, raw=True).text, **LOCKED)

    copies = [copy_of("tank/backups/photos", 7), copy_of("tank/backups/photos-old", 0)]
    rows.put(datasets=[TANK, *copies])
    assert "Unlock everything" not in text_of(web.get("/folders/"))
    assert codes_on_page(web.get("/folders/unlock-all/")) == ["nothing-locked"]
    root = dataset("tank/vault", encryption_root="tank/vault", **LOCKED)
    rows.put(datasets=[TANK, *copies, root, dataset("tank/vault/a", encryption_root="tank/vault", **LOCKED)])
    assert "Unlock everything" in text_of(web.get("/folders/"))
    assert "tank/backups" not in text_of(web.get("/folders/unlock-all/"))
    assert [row.name for row in locked_roots()] == ["tank/vault"]


def test_folder_and_volume_offer_a_snapshot_and_a_new_name_and_a_continued_copy_does_not(web, calm):
    copied = CopyMark(7, raw=False).text
    found = (
        dataset("tank/photos"),
        dataset("tank/disk", kind="volume", mounted=False, mountpoint="", volsize=2**30),
        dataset("tank/copy", copy_of=copied),
    )
    rows.put(datasets=list(found))
    for one in found:
        page = web.get(f"/folders/{one.guid}/").content.decode()
        offered = f'href="/snapshots/of/{one.guid}/take/"' in page
        assert offered is (one.name != "tank/copy"), one.name
        assert (f'href="/folders/{one.guid}/rename/"' in page) is (one.name != "tank/copy"), one.name


# --- block sizes of a volume -----------------------------------------------------------------------------------------
def put_pool(*vdevs: object) -> None:
    rows.put(pools=[replace(rows.pool_of("tank", 1000), vdevs=vdevs)], datasets=[TANK], shares=[], disks=[])


def test_volume_page_says_what_each_block_size_costs_in_this_pool(web, calm):
    put_pool(group("raidz2-0", *map(leaf, (1, 2, 3, 4, 5))))
    response = web.get("/folders/volumes/new/")
    assert_nothing_inline(response)
    text = text_of(response)
    assert "What each block size costs in tank" in text
    assert "For a virtual machine or a database choose 32 KiB." in text
    for block, room, more, small in (
        ("4 KiB", "1.79 TB", "78 % more", "0.8×"),
        ("16 KiB", "1.34 TB", "33 % more", "1.0×"),
        ("128 KiB", "1.00 TB", "", "5.5×"),
    ):
        row = text[text.index(f"{block} ", text.index("Room for 1 TB")) :]
        assert room in row[:120], row[:120]
        assert more in row[:120], row[:120]
        assert small in row[:120], row[:120]


def test_volume_page_advises_the_usual_block_on_a_mirror_and_says_nothing_of_what_is_not_known(web, calm):
    put_pool(group("mirror-0", leaf(1), leaf(2)))
    text = text_of(web.get("/folders/volumes/new/"))
    assert "16 KiB virtual machine, database" in text
    assert "64 KiB disk of a desktop" in text
    assert "more than files" not in text
    assert "much more room" not in text
    put_pool(group("draid1-0", leaf(1), leaf(2), leaf(3), kind="draid"))
    assert "What each block size costs" not in text_of(web.get("/folders/volumes/new/"))
