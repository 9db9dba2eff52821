"""Pages of pools that come and go, and what the worker reads for them."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from appliance import agent_client
from appliance.errors import Failed
from appliance.facts.box import Checkpoint, PoolDetail, Use
from appliance.facts.importable import Importable
from appliance.facts.sharing import Share
from appliance.formatting import size_text
from appliance.pools import features
from tests.reasons import codes_of_form, codes_on_page
from tests.unit.made import dataset, disk, recorded_pool, shared
from tests.unit.pools.import_samples import GUID, REWIND, SEARCH, found
from tests.web import rows
from tests.web.reading import Page, assert_nothing_inline, text_of
from tests.web.system.test_hostile import HOSTILE
from web.inventory.models import DetailRow, ImportableRow, PoolRow, SessionRow, Source
from web.jobs.models import Job
from workers import collect_importable

CONFIRM = "/jobs/confirm/"
BRING_IN = "/pools/import/"
TANK = recorded_pool()
END = f"/pools/{TANK.guid}/end/"


@pytest.fixture
def tank(calm) -> list[tuple[str, ...]]:
    """One pool in use with a shared folder; what is sent to the queue."""
    rows.put(
        pools=[TANK],
        datasets=[dataset("tank"), shared()],
        disks=rows.recorded_disks([TANK]),
        accounts=["anna"],
        shares=[Share("smb", "photos", "/tank/photos")],
        importable=[],
        details=[PoolDetail(TANK.guid, 214, "off", ("draid", "zstd_compress"))],
    )
    return calm


def listed(*pools: Importable) -> None:
    rows.put(pools=[], datasets=[], disks=[], accounts=[], shares=[], importable=pools)


def import_page(web, **answers: str):
    return web.get(f"{BRING_IN}{GUID}/", {"answered": "yes", "name": "attic", **answers} if answers else {})


# --- bringing in ----------------------------------------------------------------------------------------------
def test_before_anybody_looked_it_says_so_and_names_what_disks_hint_at(web, calm):
    assert "Not searched yet" in text_of(web.get(BRING_IN))
    rows.put(disks=[disk(1, uses=(Use("exported", "holds the pool attic, which is not in use here", "42", "attic"),))])
    assert "Disks of attic are here." in text_of(web.get(BRING_IN))


def test_looking_asks_the_worker_once_and_says_that_it_looks(web, calm):
    for _ in range(2):
        response = web.post(f"{BRING_IN}look/")
        assert (response.status_code, response["Location"]) == (302, BRING_IN)
    assert calm.count(("workers.look_for_pools",)) == 1
    assert "Searching all disks" in text_of(web.get(BRING_IN))


def test_seeing_the_page_does_not_search_the_disks(web, calm):
    web.get(BRING_IN)
    web.get(BRING_IN, {"part": "live"})
    assert ("workers.look_for_pools",) not in calm


@pytest.mark.parametrize(
    ("pool", "said", "offered"),
    [
        (found(), "All of its disks are here.", True),
        (found(state="DEGRADED"), "can still be used", True),
        (found(other_host=True, host="cellar"), "(cellar) used it last and did not export it", True),
        (found(state="UNAVAIL", active_elsewhere=True), "Export it there first", False),
        (found(state="UNAVAIL", read_only_only=True), "can be read here, not changed", True),
        (found(state="UNAVAIL", log_missing=True), "log device is missing", True),
        (found(state="FAULTED", rewind=REWIND), f"as it was on {REWIND.as_of}. About 12 seconds of work", True),
        (found(state="FAULTED"), "their data does not fit together", False),
        (found(destroyed=True), "It can be recovered", True),
    ],
)
def test_each_state_is_said_with_what_it_means(web, calm, pool, said, offered):
    listed(pool)
    page = Page(web.get(BRING_IN))
    assert said in page.text
    links = [found.get("href") for tag, found in page.elements if tag == "a"]
    assert (f"{BRING_IN}{GUID}/" in links) is offered


def test_a_pool_that_is_in_use_meanwhile_is_no_longer_listed(web, calm):
    listed(found())
    rows.put(pools=[replace(TANK, guid=GUID)])
    assert "All of its disks are here." not in text_of(web.get(BRING_IN))


def test_destroyed_pools_are_apart(web, calm):
    listed(found(), found(guid=5, name="gone", destroyed=True))
    text = text_of(web.get(BRING_IN))
    assert text.index("attic") < text.index("Destroyed pools that can be recovered") < text.index("Recover gone")


def test_a_whole_pool_is_asked_only_what_concerns_it(web, calm):
    listed(found())
    page = Page(import_page(web))
    fields = {attributes.get("name") for tag, attributes in page.elements if tag == "input"}
    assert {"name", "read_only", "move_folders"} <= fields
    assert not {"force", "rewind", "without_log"} & fields


def test_it_is_reviewed_and_becomes_a_job_of_that_number_and_name(web, calm):
    listed(found())
    page = Page(import_page(web, name="cellar", read_only="on"))
    assert "readonly=on" in page.text
    response = web.post(CONFIRM, page.form(CONFIRM).data)
    job = Job.objects.get()
    assert (response.status_code, job.kind, job.subject) == (302, "import-pool", "cellar")
    assert f'"guid":{GUID}' in job.operation


def test_another_hosts_pool_is_refused_until_it_is_said_and_then_the_name_is_typed(web, calm):
    listed(found(other_host=True))
    response = import_page(web, name="attic")
    assert response.status_code == 400
    assert codes_of_form(response, "force") == ["pool-used-by-other-system"]
    assert Page(response).field_error("id_force")
    page = Page(import_page(web, name="attic", force="on"))
    assert "destroy it beyond repair" in page.text
    assert web.post(CONFIRM, page.form(CONFIRM).data).status_code == 400
    assert not Job.objects.exists()
    assert web.post(CONFIRM, {**page.form(CONFIRM).data, "typed": "attic"}).status_code == 302


def test_a_damaged_pool_is_refused_until_going_back_is_chosen(web, calm):
    listed(found(state="FAULTED", rewind=REWIND))
    response = import_page(web, name="attic")
    assert response.status_code == 400
    assert codes_of_form(response, "rewind") == ["pool-needs-rewind"]
    assert REWIND.as_of in text_of(response)
    page = Page(import_page(web, name="attic", rewind="on"))
    assert "about 12 seconds" in page.text
    assert "To erase what is listed above" in page.text


def test_the_last_resort_proposes_to_look_first_and_says_between_which_moments(web, calm):
    listed(found(state="FAULTED", rewind=SEARCH))
    page = Page(web.get(f"{BRING_IN}{GUID}/"))
    assert f"at best it can be imported as it was on {SEARCH.as_of}, at worst as on {SEARCH.at_worst}" in page.text
    fields = {attributes.get("name"): attributes for tag, attributes in page.elements if tag == "input"}
    assert "checked" in fields["read_only"]
    assert "checked" not in fields["last_resort"]
    assert "rewind" not in fields
    assert Page(import_page(web, name="attic", read_only="on")).field_error("id_last_resort")
    review = Page(import_page(web, name="attic", read_only="on", last_resort="on"))
    assert "many hours" in review.text
    assert "typed" not in review.form(CONFIRM).data
    assert "To erase what is listed above" in text_of(import_page(web, name="attic", last_resort="on"))


@pytest.mark.parametrize("name", ["", "etc", "a/b", "tank\n", "-f"])
def test_a_name_that_cannot_be_is_said_at_its_field(web, calm, name):
    listed(found())
    response = import_page(web, name=name)
    assert response.status_code == 400
    assert Page(response).field_error("id_name")


def test_a_pool_that_is_not_listed_has_no_page(web, calm):
    for key in ("1", "x", "0" * 400):
        assert web.get(f"{BRING_IN}{key}/").status_code == 404


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_whatever_the_labels_say_is_text(web, calm, text):
    from appliance.facts.importable import ImportablePart, Rewind

    hostile = found(
        name=text,
        comment=text,
        host=text,
        status=text,
        action=text,
        other_host=True,
        state="FAULTED",
        rewind=Rewind(text, text),
        parts=(ImportablePart(text, "ONLINE", text),),
    )
    listed(hostile, replace(hostile, guid=7, state="ONLINE", rewind=None), replace(hostile, guid=8, destroyed=True))
    urls = [
        BRING_IN,
        f"{BRING_IN}{GUID}/",
        f"{BRING_IN}7/?answered=yes&name=attic&force=on",
        f"{BRING_IN}7/?answered=yes&name=attic",
    ]
    for url in urls:
        response = web.get(url)
        assert response.status_code in {200, 400}, url
        assert_nothing_inline(response)
    visible = " ".join(text.replace("\x00", "\ufffd").split())[:60]
    assert visible in " ".join(" ".join(Page(web.get(BRING_IN)).texts).replace("\x00", "\ufffd").split())


# --- leaving --------------------------------------------------------------------------------------------------
def test_the_pools_page_offers_what_can_be_done_with_all_of_it(web, tank):
    page = Page(web.get(f"/pools/{TANK.guid}/"))
    links = {attributes.get("href") for tag, attributes in page.elements if tag == "a"}
    assert {f"{END}{act}/" for act in ("export", "destroy", "checkpoint", "upgrade")} <= links
    assert not {f"{END}{act}/" for act in ("discard", "rewind")} & links
    assert "offers 2 features" in page.text
    assert ("workers.read_details",) in tank


def test_a_checkpoint_is_shown_with_its_age_and_cost(web, tank):
    moment = Checkpoint("exists", datetime(2026, 11, 20, 8, 30, tzinfo=UTC), 5 * 2**30)
    rows.put(pools=[replace(TANK, checkpoint=moment)])
    page = Page(web.get(f"/pools/{TANK.guid}/"))
    links = {attributes.get("href") for tag, attributes in page.elements if tag == "a"}
    assert size_text(5 * 2**30) in page.text
    assert {f"{END}discard/", f"{END}rewind/"} <= links
    assert f"{END}checkpoint/" not in links


@pytest.mark.parametrize(
    ("setting", "page"),
    [
        ({"smb": {"name": "photos", "write": ["anna"]}}, "/folders/{guid}/share/"),
        ({"nfs": {"hosts": ["10.0.0.7"]}}, "/shares/{guid}/nfs/"),
        ({"afp": {"name": "photos", "write": ["anna"]}}, "/shares/{guid}/afp/"),
        ({"nfs": {"hosts": ["10.0.0.7"]}, "afp": {"name": "photos", "write": ["anna"]}}, "/folders/{guid}/"),
    ],
)
def test_an_offered_share_leads_to_the_page_where_it_is_switched_on(web, tank, setting, page):
    offered = shared(share=json.dumps(setting), share_source="received")
    rows.put(pools=[TANK], datasets=[dataset("tank"), offered], shares=[])
    text = web.get(f"/pools/{TANK.guid}/").content.decode()
    (link,) = re.findall(r'href="([^"]*)">Review this share', text)
    assert link == page.format(guid=offered.guid)
    assert web.get(link).status_code == 200


@pytest.mark.parametrize(("protocols", "offered"), [((), True), (("smb",), True), (("smb", "nfs"), False)])
def test_a_folder_is_offered_until_each_of_its_protocols_is_on(web, tank, protocols, offered):
    setting = {"smb": {"name": "photos", "write": ["anna"]}, "nfs": {"hosts": ["10.0.0.7"]}}
    folder = shared(share=json.dumps(setting), share_source="received")
    served = [Share(protocol, "photos", folder.mountpoint) for protocol in protocols]
    rows.put(pools=[TANK], datasets=[dataset("tank"), folder], shares=served)
    assert ("asks to be shared" in text_of(web.get(f"/pools/{TANK.guid}/"))) is offered


def test_shares_that_a_pool_brought_along_are_offered_and_not_on(web, tank):
    assert "asks to be shared" not in text_of(web.get(f"/pools/{TANK.guid}/"))
    rows.put(shares=[])
    page = Page(web.get(f"/pools/{TANK.guid}/"))
    assert "tank/photos asks to be shared as photos for anna. It is off until you say so." in page.text.replace(
        " .", "."
    )


@pytest.mark.parametrize(
    ("act", "kind", "words"),
    [
        ("export", "export-pool", "Shares that stop photos"),
        ("destroy", "destroy-pool", "the folder tank/photos"),
        ("checkpoint", "take-checkpoint", "The checkpoint records"),
        ("upgrade", "upgrade-pool", "draid, zstd_compress"),
    ],
)
def test_each_act_is_reviewed_and_becomes_a_job(web, tank, act, kind, words):
    page = Page(web.get(f"{END}{act}/"))
    assert words in page.text
    data = page.form(CONFIRM).data
    if act in {"destroy", "upgrade"}:
        assert web.post(CONFIRM, data).status_code == 400
        assert web.post(CONFIRM, {**data, "typed": "Tank"}).status_code == 400
        assert not Job.objects.exists()
        data["typed"] = "tank"
    for _ in range(2):
        assert web.post(CONFIRM, data).status_code == 302
    assert Job.objects.get().kind == kind


@pytest.mark.parametrize("act", ["discard", "rewind"])
def test_without_a_checkpoint_there_is_none_to_go_back_to(web, tank, act):
    response = web.get(f"{END}{act}/")
    assert (response.status_code, codes_on_page(response)) == (409, ["checkpoint-missing"])


def test_acts_that_there_are_not_and_pools_that_are_gone_have_no_page(web, tank):
    for url in (f"{END}explode/", "/pools/1/end/export/", f"{END}Export/"):
        assert web.get(url).status_code == 404


def test_a_pool_with_a_name_that_no_command_should_see_is_refused(web, tank):
    rows.put(pools=[replace(TANK, name="-rf ../x")])
    assert web.get(f"{END}export/").status_code == 409


def test_after_a_destruction_the_way_back_is_offered(web, tank):
    job = rows.job(kind="destroy-pool", state=Job.State.DONE)
    page = Page(web.get(f"/jobs/{job.pk}/"))
    assert (BRING_IN, "Recover it") in [(found.get("href"), "Recover it") for tag, found in page.elements if tag == "a"]


# --- erasing --------------------------------------------------------------------------------------------------
def test_a_free_disk_can_be_erased_and_its_serial_number_is_typed(web, calm):
    free, *_others = rows.empty_box(2)
    key = free.path.rsplit("/", 1)[-1]
    page = Page(web.get(f"/disks/{key}/"))
    links = {attributes.get("href") for tag, attributes in page.elements if tag == "a"}
    assert {f"/disks/{key}/wipe/?how=quick", f"/disks/{key}/wipe/?how=full"} <= links
    for how, step in (("quick", "Clear the tables"), ("full", "Write zeros over all")):
        review = Page(web.get(f"/disks/{key}/wipe/?how={how}"))
        assert step in review.text
        data = review.form(CONFIRM).data
        assert web.post(CONFIRM, data).status_code == 400
        assert web.post(CONFIRM, {**data, "typed": free.serial}).status_code == 302
    assert Job.objects.filter(kind="erase-disk").count() == 2


def test_a_disk_in_use_offers_no_erasing_and_refuses_it(web, tank):
    key = "ata-WDC_WD20EARS-00MVWB0_WD-WCAZA0000001"
    assert "Erase quickly" not in text_of(web.get(f"/disks/{key}/"))
    response = web.get(f"/disks/{key}/wipe/?how=full")
    assert response.status_code == 409
    assert codes_on_page(response) == ["disk-not-erasable"]
    assert web.get("/disks/nothing/wipe/").status_code == 404


# --- what the worker reads ------------------------------------------------------------------------------------
@pytest.fixture
def agent(monkeypatch) -> dict[str, Any]:
    answers: dict[str, Any] = {}

    def last(request: dict[str, Any], **_more: Any) -> dict[str, Any]:
        found = answers[request["verb"]]
        if isinstance(found, Exception):
            raise found
        return {"facts": found}

    monkeypatch.setattr(agent_client, "send_request", last)
    return answers


def test_what_the_agent_found_becomes_rows(agent, calm):
    agent["look-for-pools"] = [
        {"name": "attic", "guid": 2**64 - 1, "state": "ONLINE", "parts": [{"name": "attic", "state": "ONLINE"}]}
    ]
    collect_importable.collect_importable()
    assert ImportableRow.objects.get().fact.parts[0].name == "attic"
    agent["look-for-pools"] = []
    collect_importable.collect_importable()
    assert not ImportableRow.objects.exists()


def test_a_page_that_waits_hears_of_the_end_of_its_own_look_and_of_no_earlier_one(web, agent, calm, monkeypatch):
    agent["look-for-pools"] = []
    last = agent_client.send_request

    def asked_meanwhile(*args: Any, **kwargs: Any) -> dict[str, Any]:
        web.post(f"{BRING_IN}look/")
        return last(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(agent_client, "send_request", asked_meanwhile)
        collect_importable.collect_importable()
    waiting = web.get(BRING_IN, {"part": "live"})
    assert "Searching all disks" in text_of(waiting)
    collect_importable.collect_importable()
    again = web.get(BRING_IN, {"part": "live"}, HTTP_IF_NONE_MATCH=waiting["ETag"])
    assert again.status_code == 200, "nothing was found as before, and the page still has to change"
    assert "Searching all disks" not in text_of(again)


@pytest.mark.parametrize("answer", [Failed("zpool did not answer"), [{"name": 3}], "nonsense", None])
def test_a_look_that_went_wrong_is_said_and_keeps_what_was_known(web, agent, calm, answer):
    listed(found())
    agent["look-for-pools"] = answer
    collect_importable.collect_importable()
    assert ImportableRow.objects.count() == 1
    assert Source.objects.get(name="importable").error
    assert "The search failed." in text_of(web.get(BRING_IN))


def test_details_and_sessions_are_read_for_each_pool_that_answers(agent, calm, monkeypatch):
    rows.put(pools=[TANK, replace(TANK, guid=5, name="stuck", state="SUSPENDED")])
    monkeypatch.setattr(features, "read_pool_detail", lambda pool: PoolDetail(pool.guid, 3))
    agent["read-sessions"] = [{"user": "anna", "machine": "mac", "share": "photos"}]
    collect_importable.collect_details()
    assert [row.fact for row in DetailRow.objects.all()] == [PoolDetail(TANK.guid, 3)]
    assert SessionRow.objects.get().fact.user == "anna"


def test_details_of_a_pool_are_read_beside_one_whose_row_is_odd(agent, calm, monkeypatch):
    rows.put(pools=[TANK, replace(TANK, guid=5, name="odd")])
    PoolRow.objects.filter(name="odd").update(facts="{}")
    monkeypatch.setattr(features, "read_pool_detail", lambda pool: PoolDetail(pool.guid, 3))
    agent["read-sessions"] = []
    collect_importable.collect_details()
    assert [row.fact for row in DetailRow.objects.all()] == [PoolDetail(TANK.guid, 3)]


def test_one_reading_that_fails_does_not_silence_the_other(agent, calm, monkeypatch):
    rows.put(pools=[TANK])
    monkeypatch.setattr(features, "read_pool_detail", lambda pool: PoolDetail(pool.guid, 3))
    agent["read-sessions"] = Failed("Larder's agent does not answer")
    collect_importable.collect_details()
    assert DetailRow.objects.exists()
    assert "does not answer" in Source.objects.get(name="sessions").error


@pytest.mark.parametrize(("kind", "looks"), [("destroy-pool", 1), ("export-pool", 1), ("set-share", 0)])
def test_after_a_pool_has_come_or_gone_the_disks_are_searched_again(monkeypatch, calm, kind, looks):
    asked: list[str] = []
    monkeypatch.setattr(collect_importable.collect_importable, "delay", lambda: asked.append("look"))
    collect_importable.search_after_job(str(rows.job(kind=kind).pk))
    assert len(asked) == looks
