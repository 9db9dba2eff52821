"""The box gets another name from the System page: the system, the certificate and all that answers by name follow."""

from __future__ import annotations

import ssl
from urllib.parse import urlencode, urlsplit

import pytest

from deploy.image.machine import wait_for
from tests.system import sharing
from tests.system.sharing import Client
from tests.visitor import Answer

STATE = "share"
NAME = "attic-nas"


@pytest.fixture(scope="module")
def box(visitor, appliance):
    sharing.make_pool(appliance, "tank", "photos")
    sharing.make_person(visitor, "anna")
    assert sharing.set_share(visitor, appliance, "tank/photos", name="photos", write="anna").startswith("Done.")
    return appliance


def rename(visitor, name: str) -> str:
    def reviewed() -> Answer | None:
        """The review; none while the former name is not read yet, which looking at the page asks for."""
        visitor.get("/system/")
        review = visitor.get(f"/system/host-name/?{urlencode({'name': name})}")
        return review if review.status == 200 else None

    return visitor.ended(visitor.confirm(wait_for("a review", reviewed, timeout=90, every=2)), timeout=300)


def certificate(appliance) -> str:
    """The certificate that the box shows to a browser."""
    address = urlsplit(appliance.address)
    return ssl.get_server_certificate((address.hostname or "", address.port or 443))


@pytest.mark.parametrize("name", ["localhost", "12", "-attic", "a" * 16, "attic nas", "x;reboot"])
def test_name_that_networks_cannot_use_is_refused_and_changes_nothing(visitor, box, name):
    visitor.wait_until("/system/", "Name, language and time", timeout=90)
    before = box.run("cat", "/etc/hostname", "/etc/hosts")
    assert visitor.get(f"/system/host-name/?{urlencode({'name': name})}").status == 400
    assert box.run("cat", "/etc/hostname", "/etc/hosts") == before


def test_box_is_renamed_everywhere_and_shares_go_on(visitor, box, tmp_path):
    former, shown = box.run("hostname").strip(), certificate(box)
    said = rename(visitor, NAME)
    assert said.startswith("Done."), said
    assert box.run("hostname").strip() == NAME
    assert box.run("cat", "/etc/hostname").strip() == NAME
    assert box.run("getent", "hosts", NAME).split()[1] == NAME, "the name leads to the box itself"
    wait_for("the new certificate", lambda: certificate(box) != shown, timeout=60, every=1)
    box.put("/tmp/shown.pem", certificate(box))
    assert f"DNS:{NAME}.local" in box.run(
        "openssl", "x509", "-in", "/tmp/shown.pem", "-noout", "-ext", "subjectAltName"
    )
    assert NAME in box.shell("nmblookup -A 127.0.0.1 || true").lower(), "Samba answers by the new name"

    anna, file = Client(box, tmp_path, "anna"), tmp_path / "note"
    file.write_text("kept\n")
    anna.done("photos", f"put {file} note")
    assert box.run("cat", "/tank/photos/note") == "kept\n"
    visitor.wait_until("/system/", NAME, timeout=90)

    assert rename(visitor, former).startswith("Done.")
    assert box.run("hostname").strip() == former
