from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from appliance import command
from appliance.shares import samba_defaults
from appliance.shares.iscsi import configfs
from appliance.system import paths
from appliance.zfs import mount as zfs_mount
from appliance.zfs import mountpoints

# The same examples in every run: what fails here fails everywhere.
# Others are looked for with --hypothesis-profile=explore.
settings.register_profile(
    "unit",
    max_examples=60,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
settings.register_profile("explore", settings.get_profile("unit"), derandomize=False, max_examples=500)
settings.load_profile("unit")


@pytest.fixture(scope="session", autouse=True)
def no_waiting_for_disks() -> Iterator[None]:
    """Syncing is what a test looks at, not what it waits for."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", lambda _handle: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def no_samba_of_this_computer() -> Iterator[None]:
    """What this computer's own Samba is set to is nothing to the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(samba_defaults, "CONFIG", Path("/nonexistent"))
        yield


@pytest.fixture(scope="session", autouse=True)
def no_targets_of_this_computer() -> Iterator[None]:
    """What this computer's own kernel serves over iSCSI is nothing to the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(configfs, "ROOT", Path("/nonexistent"))
        yield


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Every place of the appliance below a folder of this test's own."""
    run, state = tmp_path / "run", tmp_path / "agent"
    for name, path in {
        "RUN": run,
        "SECRETS": run / "secrets",
        "LOCKS": run / "locks",
        "ASKED": run / "asked",
        "JOBS": run / "jobs",
        "TARGETS": run / "targets",
        "AGENT_SOCKET": run / "agent.sock",
        "AGENT_STATE": state,
        "SSH": state / "ssh",
        "RECEIVE": state / "receive",
        "JOURNALS": state / "journal",
    }.items():
        monkeypatch.setattr(paths, name, path)
    for path in (paths.SECRETS, paths.JOBS, paths.JOURNALS):
        path.mkdir(parents=True)
    yield tmp_path


class Commands:
    """Stands in for ``command.run``: remembers what was to be run, answers as told, starts nothing."""

    def __init__(self) -> None:
        self.ran: list[list[str]] = []
        self.given: list[str | None] = []
        self.answers: dict[str, str] = {}
        self.on_run: Callable[[list[str]], None] = lambda _argv: None

    def run(self, argv: Sequence[str], *, given: str | None = None, **_more: Any) -> command.Result:
        self.ran.append(list(argv))
        self.given.append(given)
        self.on_run(list(argv))
        return command.Result(tuple(argv), 0, self.answers.get(argv[0], ""), "", 0.0)

    def lines(self, argv: Sequence[str], *, silence: float) -> Iterator[bytes]:
        yield from self.run(argv).stdout.encode().splitlines()

    @property
    def tools(self) -> list[str]:
        return [argv[0] for argv in self.ran]


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> Commands:
    stand_in = Commands()
    monkeypatch.setattr(command, "run", stand_in.run)
    monkeypatch.setattr(command, "read_lines", stand_in.lines)

    def refuse(*args: Any, **_kwargs: Any) -> None:
        stand_in.ran.append([f"Popen {args!r}"])
        raise OSError("no process in this test")

    monkeypatch.setattr("subprocess.Popen", refuse)
    return stand_in


HANDLE = 77  # of the top folder of whatever dataset, in tests that mount nothing


@pytest.fixture
def mounts(commands: Commands, monkeypatch: pytest.MonkeyPatch) -> Commands:
    """Stands in for the one place that mounts: what is mounted stands among the commands as ``["mount", NAME]``, with
    ``new`` where nothing may be there yet. Every folder's place is free and its top can be held."""

    def mount(name: str, _work: Any, *, new: bool = False, **_more: Any) -> None:
        commands.run(["mount", name, *(["new"] if new else [])])

    @contextmanager
    def top_of(_name: str, _place: str) -> Iterator[int]:
        yield HANDLE

    monkeypatch.setattr(zfs_mount, "mount_dataset", mount)
    monkeypatch.setattr(mountpoints, "top_of", top_of)
    monkeypatch.setattr(mountpoints, "refuse_taken", lambda _place: None)
    return commands
