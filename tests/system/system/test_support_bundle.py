"""The support bundle of a real box: every file is there and readable, and no secret of the box is in any of them."""

from __future__ import annotations

import html
import io
import json
import re
import urllib.request
import zipfile

import pytest

from appliance.support.sections import OWN, SECTIONS
from deploy.image.machine import Machine
from tests.system import alerting, persons
from tests.visitor import PASSWORD, Visitor, disk_paths

# One in each place where a secret can be.
PASSPHRASE = "canary-pool-passphrase-1"
SMB = "canary-smb-password-2"
MAIL = "canary-mail-password-3"
TOKEN = "canary-hook-token-4"
TYPED = "canary-typed-as-name-5"
LOGGED = "canary-logged-6"
KEY = "canary-backup-key-7"


def ask(appliance: Machine, query: str) -> list[str]:
    """The first column of what the settings database answers."""
    return [str(row[0]) for row in json.loads(appliance.run("python3", "-c", alerting.ASK, alerting.SETTINGS, query))]


def download(visitor: Visitor, path: str) -> bytes:
    with visitor.opener.open(urllib.request.Request(visitor.appliance.address + path), timeout=120) as reply:
        assert reply.headers["Content-Disposition"].startswith("attachment")
        return reply.read()


def press(visitor: Visitor, button: str, **fields: object) -> None:
    """Send one of the forms of the page."""
    answer = visitor.post(f"/system/support/{button}/", "/system/support/", **fields)
    assert answer.status == 200, answer.words


def make_bundle(visitor: Visitor, *masked: str) -> dict[str, str]:
    """Make one by the page and download it; its files."""
    press(visitor, "discard")
    press(visitor, "make", masked=list(masked))
    page = visitor.wait_until("/system/support/", "The bundle is ready.", timeout=400)
    link = re.search(r'href="(/system/support/[0-9a-f]+/download/)"', page.text)
    assert link, page.words
    with zipfile.ZipFile(io.BytesIO(download(visitor, link[1]))) as archive:
        files = {name: archive.read(name).decode() for name in archive.namelist()}
    looked = visitor.get(link[1].replace("download", "versions.txt"))
    assert html.escape(files["versions.txt"].splitlines()[0]) in looked.text
    return files


@pytest.fixture(scope="module")
def planted(appliance, visitor) -> list[str]:
    """Every secret that must be nowhere: those of the box itself, and canaries in each place where one can be."""
    review = visitor.review_pool("vault", disk_paths(appliance, 1, 2), "mirror-1", encrypted="on")
    job = visitor.confirm(review, secret=PASSPHRASE, again=PASSPHRASE)
    assert visitor.ended(job).startswith("Done."), visitor.ended(job)
    guid = appliance.run("zfs", "get", "-H", "-o", "value", "guid", "vault").strip()
    appliance.shell(
        f"mkdir -p /var/lib/larder-agent/keys; printf %s '{PASSPHRASE}' > /var/lib/larder-agent/keys/{guid}"
    )
    persons.make(visitor, "anna", SMB)
    webhook = f"https://hooks.example.org/services/{TOKEN}"
    secret = {
        "security": "starttls",
        "user": "anna",
        "password": MAIL,
        "webhook": webhook,
        "address": appliance.address,
    }
    answer = visitor.post("/alerts/mail/", **{**alerting.MAIL, "port": 587, "digest_hour": 8, **secret})
    assert answer.status == 200, answer.words
    assert ask(appliance, "select webhook from larder_alerts_mailsettings") == [webhook]
    own = [appliance.run("cat", f"/var/lib/larder/{name}").strip() for name in ("secret-key", "mail-password")]
    assert own[1] == MAIL
    private = f"-----BEGIN OPENSSH PRIVATE KEY-----\n{KEY}\n-----END OPENSSH PRIVATE KEY-----\n"
    appliance.put("/var/lib/larder-agent/backup-key", private, mode="0600")
    appliance.run(
        "logger", "--tag", "sshd", "--priority", "authpriv.info", f"Invalid user {TYPED} from 192.168.1.77 port 4711"
    )
    appliance.run(
        "logger", "--tag", "nmbd", f"password={LOGGED} https://hooks.example.org/services/{TOKEN} {MAIL} {PASSPHRASE}"
    )
    sessions = ask(appliance, "select session_key from django_session")
    assert sessions
    return [*own, PASSPHRASE, SMB, MAIL, TOKEN, TYPED, LOGGED, KEY, PASSWORD, *sessions]


def test_bundle_without_masks_holds_every_file_and_no_secret(appliance, visitor, planted):
    files = make_bundle(visitor)
    assert set(files) == {one.name for one in SECTIONS} | set(OWN) | {"README.txt"}
    for name, text in files.items():
        assert "could not be read" not in text.splitlines()[0], text[:500]
        for secret in planted:
            assert secret not in text, name
    assert appliance.run("uname", "-r").strip() in files["versions.txt"]
    assert "vault" in files["pools.txt"]
    assert "zpool create" in files["pool-history.txt"]
    assert appliance.disks[0].serial in files["disks.txt"]
    assert "nmbd: password=(hidden)" in files["journal.txt"]
    assert "192.168.1.77" in files["journal.txt"]


def test_masked_bundle_names_nothing_of_the_owner_and_masks_alike(appliance, visitor, planted):
    files = make_bundle(visitor, "names", "serials", "addresses")
    whole = "\n".join(files.values())
    for name in ("vault", "192.168.1.77", "anna@example.org", *(disk.serial for disk in appliance.disks), *planted):
        assert not re.search(rf"(?<![^\W_]){re.escape(name)}(?![^\W_])", whole), name
    pool = re.search(r"(<pool-\d+>)", files["pools.txt"])
    assert pool
    assert pool[1] in files["folders.txt"]
    assert pool[1] in files["pool-history.txt"]


def test_nothing_of_it_is_on_a_disk_and_it_goes_when_it_is_discarded(appliance, visitor, planted):
    before = appliance.run("date", "+%s").strip()
    make_bundle(visitor)
    found = appliance.shell(
        f"find / -xdev -newermt @{before} -type f -size +20k \\( -name '*.zip' -o -iname '*support*' \\) "
        "-not -path '/proc/*' -not -path '/opt/*' 2>/dev/null || true"
    )
    assert found.strip() == ""
    held = (
        "ls -l /proc/$(systemctl show --property=MainPID --value larder-web.service)/fd | grep -c "
        "larder-support-bundle || true"
    )
    assert appliance.shell(held).strip() == "1"
    press(visitor, "discard")
    assert appliance.shell(held).strip() == "0"
