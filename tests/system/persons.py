"""People in system tests: made through the pages, tried against Samba and the system's own passwords."""

from __future__ import annotations

import subprocess
from pathlib import Path

from deploy.image.machine import Machine
from tests.visitor import Visitor

SMB_CLIENT_SECONDS = 300


def make(visitor: Visitor, name: str, password: str, **more: str) -> None:
    """An account, through its form and review page."""
    review = visitor.post("/users/new/", name=name, **more)
    done(visitor, visitor.confirm(review, secret=password, again=password))


def done(visitor: Visitor, job: str, *, timeout: float = 180) -> None:
    said = visitor.ended(job, timeout=timeout)
    assert said.startswith("Done."), said


def pressed(visitor: Visitor, page: str, action: str, **fields: object) -> None:
    """A button of a page that leads to a job; the token is the page's."""
    answer = visitor.send(action, {"csrfmiddlewaretoken": visitor.get(page).hidden()["csrfmiddlewaretoken"], **fields})
    assert "/jobs/" in answer.url, answer.words
    done(visitor, answer.url.split("/jobs/")[1].strip("/"))


def system_takes(appliance: Machine, name: str, password: str) -> bool:
    """Whether PAM's own helper takes the password, as it would for AFP."""
    script = f"unix_chkpwd {name} nullok; echo $?"
    return appliance.run("sh", "-c", script, given=f"{password}\0", check=False).strip().endswith("0")


def smb(appliance: Machine, folder: Path, name: str, password: str, share: str, command: str) -> tuple[bool, str]:
    """A command of smbclient from outside the appliance; whether it worked, and what it said."""
    credentials = folder / f"{name}.credentials"
    credentials.write_text(f"username = {name}\npassword = {password}\n")
    port = str(appliance.ports["smb"])
    argv = ["smbclient", "-p", port, "-A", str(credentials), "-t", "120", f"//127.0.0.1/{share}", "-c", command]
    ran = subprocess.run(argv, capture_output=True, text=True, timeout=SMB_CLIENT_SECONDS, cwd=folder)
    return ran.returncode == 0, ran.stdout + ran.stderr
