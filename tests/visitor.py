"""A visitor without a browser: follows links, fills forms, keeps cookies. For system tests that need no picture."""

from __future__ import annotations

import html
import http.cookiejar
import json
import re
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from deploy.image.machine import Machine, wait_for

NAME, PASSWORD = "admin", "correct horse battery"
# Signing in costs an emulated box seven seconds: the cookies of whoever set it up are kept in it,
# and saved with its states.
COOKIES = "/root/visitor-cookies"

# What opens at a term (templates/inc/help.html) names pools and folders as examples, and tests wait for such names.
HELP = re.compile(r'<span class="help-text" popover.*?</a></span>', re.DOTALL)
# A page that is waited for is read whole this often, also where its tag says that nothing has changed.
SECONDS_BETWEEN_WHOLE = 10.0


@dataclass(frozen=True)
class Answer:
    """A page as it came: status, address after redirects, text, headers."""

    status: int
    url: str
    text: str
    headers: dict[str, str]

    @property
    def words(self) -> str:
        """What a person reads: without tags and without help that is not open, white space folded."""
        return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", " ", HELP.sub(" ", self.text))))

    def hidden(self) -> dict[str, str]:
        """The hidden fields of the page's forms; with the password, where a review page asks for it."""
        found = {"password": PASSWORD} if 'id="password-help"' in self.text else {}
        for tag in re.findall(r"<input[^>]*type=\"hidden\"[^>]*>", self.text):
            name, value = re.search(r'name="([^"]*)"', tag), re.search(r'value="([^"]*)"', tag)
            if name:
                found[name[1]] = html.unescape(value[1]) if value else ""
        return found


class Visitor:
    """One visitor of one appliance."""

    def __init__(self, appliance: Machine) -> None:
        self.appliance = appliance
        trust = ssl.create_default_context()
        trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE  # self-made at the first boot
        self.cookies = http.cookiejar.CookieJar()
        keep = urllib.request.HTTPCookieProcessor(self.cookies)
        self.opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=trust), keep)

    @classmethod
    def of_new(cls, appliance: Machine) -> Visitor:
        """Signed in as the administrator of an appliance that may not be set up yet; its
        first facts are on the pages."""
        found = cls(appliance)
        if not found.go_on():
            found.set_up()
            found.keep_cookies()
        found.wait_until("/disks/", *(disk.serial for disk in appliance.disks))
        return found

    def send(self, path: str, data: dict[str, object] | None = None, *, part: bool = False, seen: str = "") -> Answer:
        """``part``: the live part alone, with status 304 where its tag is still the one of ``seen``."""
        url = urllib.parse.urljoin(self.appliance.address, path)
        body = urllib.parse.urlencode(data, doseq=True).encode() if data is not None else None
        headers = {
            "Referer": url,
            **({"HX-Request": "true"} if part else {}),
            **({"If-None-Match": seen} if seen else {}),
        }
        request = urllib.request.Request(url, body, headers)
        try:
            with self.opener.open(request, timeout=120) as reply:
                return Answer(reply.status, reply.url, reply.read().decode(), dict(reply.headers))
        except urllib.error.HTTPError as error:
            return Answer(error.code, error.url or url, error.read().decode(), dict(error.headers))

    def get(self, path: str) -> Answer:
        return self.send(path)

    def get_live(self, path: str) -> Answer:
        """The live part of a page, as htmx asks for it."""
        return self.send(path, part=True)

    def post(self, path: str, shown_on: str = "", /, **fields: object) -> Answer:
        """Send a form as its page would, with the token that the page carries;
        ``shown_on`` is that page, where the form goes to another address."""
        token = self.get(shown_on or path).hidden().get("csrfmiddlewaretoken", "")
        return self.send(path, {"csrfmiddlewaretoken": token, **fields})

    def set_up(self) -> None:
        """The first run; signed in afterwards. Where it is done already, sign in."""
        code = self.appliance.run("cat", "/run/larder/inventory/setup-code", check=False).strip()
        if not code:
            self.sign_in()
            return
        answer = self.post("/setup/", code=code, username=NAME, password=PASSWORD, again=PASSWORD)
        assert answer.status == 200, answer.words
        assert "/setup/" not in answer.url, answer.words

    def keep_cookies(self) -> None:
        fields = [{key: value for key, value in vars(cookie).items() if key != "_rest"} for cookie in self.cookies]
        self.appliance.put(COOKIES, json.dumps(fields), mode="0600")

    def go_on(self) -> bool:
        """Take up the session that is kept in the box; whether there is one and it still holds."""
        kept = self.appliance.run("cat", COOKIES, check=False)
        if not kept:
            return False
        self.cookies.clear()
        for fields in json.loads(kept):
            self.cookies.set_cookie(http.cookiejar.Cookie(**fields, rest={}))
        return "/login/" not in self.get("/jobs/").url

    def sign_in(self) -> None:
        answer = self.post("/login/", login=NAME, password=PASSWORD)
        assert "/login/" not in answer.url, answer.words

    def review_pool(self, name: str, disks: list[str], layout: str, **more: object) -> Answer:
        """The wizard's review page for these answers."""
        query = {"step": "review", "name": name, "disks": disks, "layout": layout, **more}
        return self.get("/pools/new/?" + urllib.parse.urlencode(query, doseq=True))

    def confirm(self, review: Answer, **typed: object) -> str:
        """Confirm a review page; the job's id."""
        assert review.status == 200, review.words
        answer = self.send("/jobs/confirm/", {**review.hidden(), **typed})
        # A replacement goes back to its own page, which shows the job.
        found = re.search(r"/jobs/([0-9a-f-]{36})/", answer.url) or re.search(r"/jobs/([0-9a-f-]{36})/", answer.text)
        assert found, answer.words
        return found[1]

    def restart_box(self, *, timeout: float = 300) -> str:
        """Restart the box by its page and sign in again once it serves; the job's id."""
        self.wait_until("/system/", "Memory and load", timeout=90)
        before = boot_of(self.appliance)
        job = self.confirm(self.get("/system/power/restart/"))
        self.appliance.close_ssh()
        wait_for("another start", lambda: boot_of(self.appliance) not in {"", before}, timeout=timeout, every=2)
        self.appliance.wait_ready()
        self.sign_in()
        return job

    def watch(
        self,
        path: str,
        ready: Callable[[Answer], object],
        *,
        timeout: float = 180,
        every: float = 1.5,
        part: bool = False,
    ) -> Any:
        """Look at a page, or its live part, until ``ready`` says something true of it, which is returned.

        As a browser does, it asks for the live part with the tag that it has, which costs the box next to nothing while
        nothing has changed. A page that was rendered at each look took a third of an emulated box's processor.
        """
        tag, whole_at = "", 0.0

        def look() -> object:
            nonlocal tag, whole_at
            if tag and time.monotonic() < whole_at:
                answer = self.send(path, part=True, seen=tag)
                if answer.status == 304:
                    return None
                if not part:
                    answer = self.get(path)
            else:
                answer = self.send(path, part=part)
            tag, whole_at = answer.headers.get("ETag", ""), time.monotonic() + SECONDS_BETWEEN_WHOLE
            return ready(answer)

        return wait_for(f"{path} to be as expected", look, timeout=timeout, every=every)

    def ended(self, job: str, *, timeout: float = 180) -> str:
        """Wait until a job has ended; its state and text as the page says them."""

        def said(page: Answer) -> str:
            found = re.search(r'<div class="attention attention-\w+" role="status">(.*?)</div>', page.text, re.DOTALL)
            return Answer(200, "", found[1], {}).words.strip() if found else ""

        return str(self.watch(f"/jobs/{job}/", said, timeout=timeout, part=True))

    def wait_until(self, path: str, *words: str, without: tuple[str, ...] = (), timeout: float = 60) -> Answer:
        """Look at a page until it says these words and none of the others."""
        last = Answer(0, "", "", {})

        def good(page: Answer) -> bool:
            nonlocal last
            last = page
            return all(word in page.words for word in words) and not any(word in page.words for word in without)

        try:
            self.watch(path, good, timeout=timeout)
        except Exception as error:
            raise AssertionError(
                f"{path} never said {words} without {without}; it says: {last.words[:1500]}"
            ) from error
        return last


def boot_of(appliance: Machine) -> str:
    """The id of this start of the box; empty while it does not answer."""
    return appliance.run("cat", "/proc/sys/kernel/random/boot_id", check=False, timeout=20).strip()


def disk_paths(appliance: Machine, *bays: int) -> list[str]:
    """The by-id paths of the disks in these bays."""
    return [
        f"/dev/disk/by-id/ata-{disk.model.replace(' ', '_')}_{disk.serial}"
        for disk in (appliance.disks[bay - 1] for bay in bays)
    ]


# As the product runs it: udev, which would take the new partitions away for a moment, is kept
# from these disks meanwhile.
RUN_ZPOOL = """
import sys
from appliance import command
from appliance.pools.vdevs.retry import run_with_udev_retry
try:
    run_with_udev_retry(["zpool", *sys.argv[1:]], timeout=240)
except command.CommandFailed as failed:
    sys.exit(failed.said)
"""


def run_zpool(appliance: Machine, *words: str) -> None:
    """``zpool`` by hand, for what partitions disks."""
    appliance.run("/opt/larder/venv/bin/python", "-I", "-c", RUN_ZPOOL, *words)
    appliance.run("udevadm", "settle")


def create_pool(appliance: Machine, *words: str) -> None:
    """``zpool create`` by hand."""
    run_zpool(appliance, "create", *words)


def blank(appliance: Machine, *disks: str) -> None:
    """Nothing is left on these disks, and the system has seen it: whoever still reads a partition is waited for."""
    for disk in disks:
        appliance.shell(f"for path in {disk}-part* {disk}; do [ ! -e $path ] || wipefs -aqf $path; done")
        # Without a signature but with other bytes at its ends it would count as a disk of unknown content.
        appliance.shell(
            f"for at in 0 $(($(blockdev --getsize64 {disk}) / 1048576 - 1)); do dd if=/dev/zero of={disk} "
            "bs=1M seek=$at count=1 status=none; done;"
            f" dd if=/dev/zero of={disk} bs=1M seek=$(($(blockdev --getsize64 {disk}) / 1048576)) status=none "
            "2>/dev/null || true"
        )

    def let_go() -> bool:
        return all(appliance.run("blockdev", "--rereadpt", disk) == "" for disk in disks)

    wait_for("every old partition to be let go of", let_go, timeout=60)
    appliance.run("udevadm", "settle")
