"""Names come with disks from anywhere: whatever they hold is text on every page."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from msgspec.structs import replace

from appliance.facts.box import Pool, Scan, Use
from appliance.facts.sharing import Share
from tests.unit.made import dataset, disk
from tests.web import rows
from tests.web.conftest import ADDRESS, PASSWORD
from tests.web.reading import assert_nothing_inline
from web.alerts.models import Alert, AlertNote, Message
from web.disks.models import BayRow, Replacement
from web.inventory.models import Activity, DiskRow, Event, HistoryLine, Progress, PropertiesRow
from web.jobs.models import Job
from web.pools.models import WorkReport

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</title></textarea><svg onload=alert(1)>",
    "{{ request.user.password }}{% debug %}{# #} %s %(x)s {0} &lt;b&gt; `$(reboot)`;'\"\\",
    "line\nbreak\r\nSet-Cookie: a=b",
    "javascript:alert(1)",
    "\u202edrowssap\u0000\u2028",
    "x" * 5000,
]
hostile = pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))


@pytest.fixture
def box(calm, text: str) -> str:
    """A box in which everything that comes from outside is hostile; the id of its one job under way."""
    member = disk(1, serial=text, model=text, bus=text)
    pool: Pool = replace(
        rows.pool_of(text, 1000, member),
        status=text,
        action=text,
        state="DEGRADED",
        scan=Scan(text, "scanning", timezone.now(), None, 100, 50, 50, 0),
    )
    others = [
        disk(2, serial=text, model=text, uses=(Use("old", f"holds {text} data called {text}", text),)),
        disk(3, serial=text, model=text, uses=(Use("exported", f"holds the pool {text}", text, text),)),
        disk(4, serial=text, model=text),
        disk(5, path="", name="sdx", serial=text, model=text),
    ]
    found = [
        dataset(text, encryption=text, key_status="unavailable", encryption_root=text, mountpoint=text),
        dataset(f"{text}/photos", share=text, share_source="local", mountpoint=text),
        dataset("tank/served", share='{"smb":{"name":"a b","write":["anna"]}}', share_source="local"),
    ]
    rows.put(
        pools=[pool],
        datasets=[replace(one, guid=at) for at, one in enumerate(found, 1)],
        disks=[member, *others],
        accounts=["anna"],
        shares=[Share("smb", "a b", "/tank/served"), Share("smb", text, text)],
    )
    Replacement.objects.create(
        pk=1,
        pool=text[:255],
        pool_guid="1000",
        vdev_guid="1001",
        disk=text[:300],
        serial=text[:300],
        model=text[:300],
        bay=text[:40],
        known={text: text},
        guids=[text],
        begun_by=text[:150],
        report=text,
    )
    BayRow.objects.create(port=text[:200], position=1, label=text[:20])
    DiskRow.objects.update(
        verdict="failing",
        reasons=[["failing", text, "", 1]],
        smart_text=text[:500],
        reading={
            "silent": text,
            "ata": True,
            "tests": [{"kind": text, "text": text, "hours": 1}],
            "figures": [[text, 1, text, 1, 1]],
        },
    )
    alert = Alert.objects.create(
        pk=1,
        kind="disk.failing",
        subject=DiskRow.objects.earliest("key").key,
        severity="critical",
        summary=text[:400],
        detail=text,
        first_seen=timezone.now(),
        quiet_until=timezone.now() + timedelta(days=1),
        quiet_reason=text[:200],
    )
    AlertNote.objects.create(alert=alert, at=timezone.now(), text=text[:500], by=text[:150])
    for event in ("raised", "test"):
        Message.objects.create(
            key=event,
            alert=alert,
            event=event,
            way="mail",
            made=timezone.now(),
            next_try=timezone.now(),
            answer=text[:500],
        )
    job = rows.job(
        state=Job.State.RUNNING,
        title=text[:300],
        subject=text[:300],
        text=text,
        log=[text],
        created_by=text[:150],
        plan={"summary": text, "steps": [{"name": text, "title": text, "shown": text}], "losses": [{"what": text}]},
    )
    rows.job(state=Job.State.FAILED, title=text[:300], subject=f"{text}/photos"[:300], kind="set-share", text=text)
    Progress.objects.create(job=job.pk, percent=1, phrase=text[:300])
    Activity.objects.create(
        key="a", pool=text[:255], pool_key="1000", kind="scrub", state="running", seen=timezone.now(), phrase=text[:120]
    )
    WorkReport.objects.create(
        key="b",
        pool_key="1000",
        pool=text,
        kind="scrub",
        outcome="finished",
        damaged=1,
        files=[text],
        wear=[[text, 1, 2, 3]],
        subject=text[:255],
    )
    for kind in ("command", "noted"):
        HistoryLine.objects.create(pool_key="1000", number=1, at=timezone.now(), kind=kind, text=text, by=text[:120])
    values = {"comment": text, "failmode": text, "autotrim": "on"}
    PropertiesRow.objects.create(key="1000", name="x", facts=json.dumps({"name": "x", "guid": 1000, "values": values}))
    Event.objects.create(
        file="2.json",
        source="zed",
        kind=f"sysevent.fs.zfs.{text}"[:120],
        subject=text[:255],
        received=timezone.now(),
        fields={"ZEVENT_VDEV_PATH": text, "ZEVENT_VDEV_READ_ERRORS": text},
    )
    Event.objects.create(
        file="1.json",
        source="smartd",
        kind=text[:120],
        subject="/dev/sda",
        received=timezone.now(),
        fields={"SMARTD_MESSAGE": text},
    )
    return str(job.pk)


@hostile
def test_on_every_page_it_is_text(web, box, text):
    wizard = "/pools/new/?name=tank&step="
    chosen = f"disks={disk(2).path}&layout=stripe-1"
    urls = [
        "/",
        "/pools/",
        "/pools/1000/",
        "/pools/1000/reports/",
        "/pools/1000/history/?show=all",
        "/pools/1000/events/",
        "/pools/1000/settings/",
        "/pools/1000/schedule/scrub/",
        "/disks/",
        *(f"/disks/{disk(number).path.rsplit('/')[-1]}/" for number in range(1, 5)),
        "/disks/sdx/",
        "/alerts/",
        "/alerts/1/",
        "/alerts/mail/",
        *(f"/disks/{disk(number).path.rsplit('/')[-1]}/health/" for number in range(1, 5)),
        "/folders/",
        "/folders/1/",
        "/folders/2/",
        "/folders/2/share/",
        "/folders/3/",
        "/folders/new/",
        "/users/",
        "/jobs/",
        f"/jobs/{box}/",
        "/disks/bays/",
        "/pools/1000/replace/",
        "/pools/replacements/",
        "/pools/replacements/1/",
        f"/pools/1000/add/spare/?disks={disk(4).path}",
        f"{wizard}disks",
        f"{wizard}layout&{chosen}",
        f"{wizard}extras&{chosen}",
        f"{wizard}options&{chosen}",
        f"{wizard}review&{chosen}",
    ]
    parts = [web.get(url, HTTP_HX_REQUEST="true") for url in ("/jobs/", "/")]
    seen = ""
    for url, response in [*((url, web.get(url)) for url in urls), *zip(("/jobs/", "/"), parts, strict=True)]:
        assert response.status_code == 200, url
        page = assert_nothing_inline(response)
        assert "pbkdf2" not in page.text
        seen += " ".join(page.texts)
    assert " ".join(text.replace("\x00", "\ufffd").split())[:60] in " ".join(seen.replace("\x00", "\ufffd").split())


@hostile
@pytest.mark.parametrize(
    "url",
    [
        "/pools/new/?step=disks&name={}",
        "/pools/new/?step=review&name={}&disks={}&layout={}",
        "/pools/new/?step=review&name=tank&layout=stripe-1&logs={}&cache={}&spares={}&rest={}",
        "/pools/new/key/{}/",
        "/pools/unlock/?dataset={}",
        "/folders/new/?parent={}",
        "/?page={}",
        "/jobs/?page={}",
        "/login/?next={}",
    ],
)
def test_in_an_address_it_is_text(web, anonymous, calm, text, url):
    from urllib.parse import quote

    for client in (web, anonymous):
        for part in ({}, {"HTTP_HX_REQUEST": "true", "HTTP_HX_CURRENT_URL": f"http://testserver/{quote(text)}"}):
            response = client.get(url.replace("{}", quote(text)), **part)
            assert response.status_code in {200, 302, 400, 404, 409}
            assert "\n" not in response.get("Location", "") + response.get("HX-Redirect", "")
            if response.status_code != 302:
                assert_nothing_inline(response)


@hostile
def test_in_a_form_it_is_text(web, box, text):
    answers = [
        web.post("/users/new/", {"name": text}),
        web.post("/folders/new/", {"parent": text, "name": text, "preset": text}),
        web.post("/folders/2/share/", {"name": text, f"user-{text}": text}),
        web.post(
            "/jobs/confirm/",
            {"operation": text, "job": text, "digest": text, "back": text, "typed": text, "secret": text},
        ),
        web.post("/account/password/", {"old_password": text, "new_password1": text, "new_password2": text}),
        web.post(f"/jobs/{box}/acknowledge/", {"next": text}),
        web.post("/pools/1000/scrub/", {"act": text}),
        web.post("/pools/1000/trim/", {"act": text}),
        web.post("/pools/1000/schedule/scrub/", {"every": text, "first": text, "last": text, "inside": text}),
        web.post("/pools/1000/settings/", {"name": text, "value": text}),
        web.post("/pools/1000/settings/", {"name": "comment", "comment": text}),
        web.post("/pools/1000/replace/", {"vdev": text}),
    ]
    for response in answers:
        assert response.status_code in {302, 400, 409}
        assert response.get("Location", "/").startswith("/")
        assert_nothing_inline(response)


@hostile
def test_a_browser_that_lies_about_itself_is_text_in_the_list_of_sessions(web, admin, calm, text):
    liar = Client(**{**ADDRESS, "HTTP_USER_AGENT": text.replace("\n", " ").replace("\r", " ")})
    liar.post("/login/", {"login": "admin", "password": PASSWORD})
    response = web.get("/account/sessions/")
    assert response.status_code == 200
    assert_nothing_inline(response)


@hostile
def test_at_the_set_up_page_it_is_text(anonymous, text):
    response = anonymous.post("/setup/", {"code": text, "username": text, "password": text, "again": text})
    assert response.status_code == 400
    assert_nothing_inline(response)


@pytest.mark.parametrize("address", ["not an address", "<script>", "", "::1%eth0"])
def test_an_address_that_is_none_is_no_fault(admin, calm, address):
    client = Client(HTTP_X_REAL_IP=address, HTTP_USER_AGENT="x")
    assert client.post("/login/", {"login": "admin", "password": PASSWORD}).status_code in {302, 403}
