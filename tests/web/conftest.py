"""Web tests: both databases in memory, every place of the appliance in a folder of the test's
own, no process, no Redis."""

from __future__ import annotations

import fcntl
import json
import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client
from django.utils import translation
from django.utils.translation import trans_real

from appliance import agent_client
from appliance.agent import delayed_jobs, proof, protocol
from appliance.system import language, paths
from deploy.catalogues import compile_catalogues
from tests.dev import place, stand_in
from tests.messages import catalogue
from tests.web import rows
from tests.web.benchmarks import client_runs_made, sweeps_made
from tests.web.copies import Copied
from tests.web.disks import burn_ins_made
from tests.web.routes import JOB, PHOTOS
from web.accounts import first_run
from web.inventory import store
from web.jobs import queue
from web.jobs.models import Job
from web.system import service_status
from workers import background, database_health, guard
from workers.alerts import direct_mail, pending_faults

HERE = Path(__file__).parent
PASSWORD = "correct horse battery"
ADDRESS: dict[str, Any] = {
    "HTTP_X_REAL_IP": "192.168.1.50",
    "HTTP_USER_AGENT": "Firefox of a test",
    "HTTP_ACCEPT_LANGUAGE": "en-GB,en;q=0.9",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.django_db(databases=["default", "inventory"]))


@pytest.fixture(autouse=True)
def own_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every place below a folder of this test's own."""
    run, agent = tmp_path / "run", tmp_path / "agent"
    for name, path in {
        "RUN": run,
        "SECRETS": run / "secrets",
        "JOBS": run / "jobs",
        "LOCKS": run / "locks",
        "AGENT_SOCKET": run / "agent.sock",
        "SPOOL": tmp_path / "spool/events",
        "AGENT_STATE": agent,
        "SSH": agent / "ssh",
        "STATE": tmp_path,
        "JOURNALS": agent / "journal",
    }.items():
        monkeypatch.setattr(paths, name, path)
    for path in (run / "inventory", paths.SECRETS, paths.SPOOL, paths.SPOOL.parent / "aside"):
        path.mkdir(parents=True)
    monkeypatch.setattr(first_run, "CODE", run / "inventory/setup-code")
    monkeypatch.setattr(service_status, "WORKER_LOCK", run / "inventory/worker.lock")
    return tmp_path


@pytest.fixture(autouse=True)
def nothing_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a process keeps from request to request begins anew."""
    monkeypatch.setattr(first_run, "known_set_up", False)
    monkeypatch.setattr(database_health, "_unusable", [])
    monkeypatch.setattr(guard, "failing", {})
    monkeypatch.setattr(guard, "_logged", {})
    monkeypatch.setattr(guard, "_noted_well", set())
    monkeypatch.setattr(pending_faults, "_kept", {})
    monkeypatch.setattr(direct_mail, "_told", set())
    monkeypatch.setattr(direct_mail, "_known", [])
    cache.clear()


@pytest.fixture(autouse=True)
def no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the worker would do in a thread beside is done at once: the databases of a test belong to its own thread."""

    def at_once(name: str, work: Callable[[], object]) -> bool:
        guard.run_guarded(name, work)
        return True

    monkeypatch.setattr(background, "start_thread", at_once)

    def waited_for(work: Callable[[], object], _seconds: float) -> bool:
        with suppress(Exception):
            work()
        return True

    monkeypatch.setattr(background, "wait_for", waited_for)


@pytest.fixture(autouse=True)
def no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """No page and no task of these tests starts a process."""

    def refuse(*args: Any, **_kwargs: Any) -> None:
        raise AssertionError(f"a process was started: {args!r}")

    monkeypatch.setattr("subprocess.Popen", refuse)
    monkeypatch.setattr("os.system", refuse)
    monkeypatch.setattr("os.posix_spawn", refuse)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Redis takes everything; what was sent."""
    taken: list[tuple[str, ...]] = []

    def send(*words: str) -> bool:
        taken.append(words)
        return True

    monkeypatch.setattr(queue, "send", send)
    monkeypatch.setattr(queue, "is_reachable", lambda: True)
    return taken


@pytest.fixture(autouse=True)
def network_sets_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test asks the computer that it runs on."""
    monkeypatch.setattr("appliance.system.clock.is_synced", lambda: True)


@pytest.fixture
def calm(sent: list[tuple[str, ...]]) -> Iterator[list[tuple[str, ...]]]:
    """Everything of Larder runs: the worker holds its lock, the agent's socket is there, Redis takes all."""
    paths.AGENT_SOCKET.touch()
    handle = os.open(service_status.WORKER_LOCK, os.O_CREAT | os.O_RDWR, 0o600)
    fcntl.flock(handle, fcntl.LOCK_EX)
    yield sent
    os.close(handle)


@pytest.fixture
def agent_in_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[dict[str, Any]]:
    """The agent itself answers what these pages ask, in this process; what it was asked."""
    asked: list[dict[str, Any]] = []

    def ask(request: dict[str, Any], **_more: Any) -> Iterator[dict[str, Any]]:
        sent: list[dict[str, Any]] = []
        asked.append(request)
        protocol.answer_request(json.dumps(request).encode(), sent.append, store.facts)
        return map(agent_client.raise_for_refusal, sent)

    monkeypatch.setattr(agent_client, "stream_replies", ask)
    monkeypatch.setattr(proof, "COST", {"n": 2, "r": 8, "p": 1})
    monkeypatch.setattr(delayed_jobs, "ISSUE", tmp_path / "waiting.issue")
    monkeypatch.setattr(delayed_jobs, "tell_terminals", lambda _text: None)
    return asked


@pytest.fixture
def admin(db: None) -> User:
    """The administrator; with one the box is set up."""
    return User.objects.create_superuser("admin", password=PASSWORD)


@pytest.fixture
def anonymous() -> Client:
    return Client(**ADDRESS)


@pytest.fixture
def web(admin: User) -> Client:
    """A browser in which the administrator is signed in."""
    client = Client(**ADDRESS)
    client.force_login(admin)
    return client


@pytest.fixture
def strict(admin: User) -> Client:
    """The same, with Django's check of forms switched on."""
    client = Client(enforce_csrf_checks=True, **ADDRESS)
    client.force_login(admin)
    return client


def write_box() -> None:
    rows.recorded_box()
    rows.replacement()
    sweeps_made.finished()
    client_runs_made.finished()
    burn_ins_made.finished()
    rows.snapshot_of(PHOTOS)
    rows.bookmark_of(PHOTOS)
    rows.alert()
    rows.job(id=uuid.UUID(JOB), state=Job.State.FAILED, text="The disk vanished.")


copy_box = Copied(write_box)


@pytest.fixture
def box(calm: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The recorded box, with one job that failed, a replacement that has begun and a sweep that has ended;
    what is sent to the queue."""
    copy_box()
    return calm


@pytest.fixture(scope="session")
def catalogues(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The catalogues, compiled as at installation."""
    folder = tmp_path_factory.mktemp("locale")
    compile_catalogues(catalogue.LOCALE, folder)
    return folder


@pytest.fixture
def dutch(settings: Any, catalogues: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Dutch can be chosen: the catalogues are where pages and the console look for them."""
    monkeypatch.setattr(trans_real, "_translations", {})
    monkeypatch.setattr(language, "CATALOGUES", catalogues)
    settings.LOCALE_PATHS = [catalogues]
    yield
    translation.activate(settings.LANGUAGE_CODE)


# --- recorded boxes -----------------------------------------------------------------------------------------------
@pytest.fixture
def recorded(settings, own_places, monkeypatch):
    """The stand-in is in the agent's place, and the bar above the pages."""
    for module, name, function in stand_in.REPLACED:
        monkeypatch.setattr(module, name, function)
    (own_places / "run/agent.sock").touch()
    settings.MIDDLEWARE = place.with_bar(settings.MIDDLEWARE)


@pytest.fixture
def opened(recorded, client):
    """Opens a recorded box as its administrator; the window to it."""

    def open_box(name: str):
        assert client.get("/", {"box": name})["Location"] == "/"
        return client

    return open_box
