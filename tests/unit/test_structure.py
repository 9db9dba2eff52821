from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CODE = {package: sorted((ROOT / package).rglob("*.py")) for package in ("appliance", "web", "workers")}
EVERY = [pytest.param(path, id=str(path.relative_to(ROOT))) for paths in CODE.values() for path in paths]
APPLIANCE = [pytest.param(path, id=str(path.relative_to(ROOT))) for path in CODE["appliance"]]
WEB = [pytest.param(path, id=str(path.relative_to(ROOT))) for path in CODE["web"]]


@cache  # several tests look at each module
def imported(text: str) -> set[str]:
    """Full names of what a module imports, wherever in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {"." * node.level + (node.module or "")} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def forbidden(text: str, *packages: str) -> set[str]:
    return {name for name in imported(text) if name.split(".", 1)[0] in packages}


@cache
def calls(text: str) -> set[str]:
    """Dotted names of what is called."""
    return {ast.unparse(node.func) for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)}


def shells(text: str) -> list[int]:
    """Lines with a keyword ``shell`` that is not the constant False."""
    return [
        keyword.value.lineno
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == "shell" and not (isinstance(keyword.value, ast.Constant) and keyword.value.value is False)
    ]


STARTERS = {
    "os.system",
    "os.popen",
    "os.posix_spawn",
    "os.posix_spawnp",
    "os.fork",
    "os.forkpty",
    "pty.spawn",
    "eval",
    "exec",
}


def starts_processes(text: str) -> set[str]:
    found = {name for name in calls(text) if name in STARTERS or name.startswith(("os.exec", "os.spawn"))}
    return (
        found
        | forbidden(text, "subprocess", "pty", "popen2", "sh", "pexpect")
        | ({"asyncio.create_subprocess"} if "create_subprocess" in text else set())
    )


def test_there_is_something_to_look_at():
    assert len(APPLIANCE) > 20
    assert ROOT / "appliance/command.py" in CODE["appliance"]


@pytest.mark.parametrize("path", APPLIANCE)
def test_the_appliance_knows_neither_django_nor_celery_nor_who_calls_it(path):
    assert forbidden(path.read_text(), "django", "celery", "kombu", "redis", "web", "workers") == set()


@pytest.mark.parametrize("path", WEB)
def test_the_web_does_not_know_the_workers_nor_load_celery(path):
    # Celery and its Redis library cost the web process 17 MiB (web/jobs/queue.py).
    assert forbidden(path.read_text(), "workers", "celery", "kombu", "redis") == set()


# The agent's server forks for each request, and becomes the new code after an update.
MAY_START = {"appliance/agent/__main__.py": {"os.fork", "os.execv"}}


@pytest.mark.parametrize("path", [param for param in EVERY if param.id != "appliance/command.py"])
def test_one_place_only_starts_processes(path):
    assert starts_processes(path.read_text()) == MAY_START.get(str(path.relative_to(ROOT)), set())


@pytest.mark.parametrize("path", EVERY)
def test_no_shell_anywhere(path):
    assert shells(path.read_text()) == []


@pytest.mark.parametrize("path", APPLIANCE)
def test_nothing_in_the_appliance_is_told_to_a_terminal(path):
    assert "print" not in calls(path.read_text())


@pytest.mark.parametrize("path", APPLIANCE)
def test_a_module_holds_one_concept_in_about_400_lines(path):
    assert len(path.read_text().splitlines()) <= 450


@pytest.mark.parametrize("path", [param for param in APPLIANCE if Path(str(param.values[0])).stat().st_size])
def test_every_module_reads_annotations_as_text(path):
    assert "__future__.annotations" in imported(path.read_text())


@pytest.mark.parametrize(
    ("text", "caught"),
    [
        ("import subprocess", True),
        ("from subprocess import run", True),
        ("def f():\n    import subprocess as s", True),
        ("import os\nos.system('id')", True),
        ("import os\nos.execvp('id', [])", True),
        ("from appliance import command\ncommand.run(['id'])", False),
    ],
)
def test_the_search_itself_finds_what_it_is_for(text, caught):
    assert bool(starts_processes(text)) is caught


def test_the_search_finds_arrows_and_shells():
    assert forbidden("from django.db import models", "django") == {"django.db", "django.db.models"}
    assert forbidden("def f():\n    from workers import mail", "workers")
    assert shells("run('id', shell=True)") == [1]
    assert shells("run('id', shell=flag)") == [1]
    assert shells("run('id', shell=False)") == []
