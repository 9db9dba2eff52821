from __future__ import annotations

import ast
import re
from collections.abc import Iterator
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


# --- packages -----------------------------------------------------------------------------------------------------
# What each package of the appliance may import of the others. The ground (the modules at the top, facts, system) is open
# to all. No two packages import each other.
GROUND = {"facts", "system"}
MAY_IMPORT = {
    "agent": {
        "backups",
        "benchmarks",
        "burn_in",
        "datasets",
        "disks",
        "imports",
        "pools",
        "shares",
        "snapshots",
        "support",
        "users",
        "zfs",
    },
    "alerts": {"agent", "disks", "pools", "zfs"},
    "backups": {"datasets", "shares", "snapshots", "zfs"},
    "benchmarks": {"disks", "files", "layout", "pools", "shares", "snapshots", "zfs"},
    "burn_in": {"benchmarks", "disks", "layout"},
    "datasets": {"files", "pools", "shares", "snapshots", "zfs"},
    "disks": {"layout", "zfs"},
    "facts": set(),
    "files": set(),
    "imports": {"backups", "datasets", "pools", "snapshots", "zfs"},
    "layout": set(),
    "pools": {"disks", "layout", "shares", "zfs"},
    "shares": {"zfs"},
    "snapshots": {"files", "shares", "zfs"},
    "support": {"pools"},
    "system": set(),
    "users": {"datasets", "files", "shares", "snapshots", "zfs"},
    "zfs": {"files", "layout"},
}
# Pairs of packages of pages that import each other, with the reason. None is to be added.
MUTUAL_IN_WEB = {
    frozenset({"alerts", "disks"}),  # the history of disks is in the tables of alerts
    frozenset({"disks", "inventory"}),  # the drawn chassis needs what the owner said of the bays
}


def package_imports(top: str) -> dict[str, set[str]]:
    """Package → the other packages beside it that its modules import."""
    found: dict[str, set[str]] = {}
    packages = {path.parent.name for path in ROOT.glob(f"{top}/*/__init__.py")}
    for package in packages:
        names = set().union(*(imported(path.read_text()) for path in ROOT.glob(f"{top}/{package}/**/*.py")))
        parts = {name.split(".")[1] for name in names if name.startswith(f"{top}.")}
        found[package] = (parts & packages) - {package}
    return found


def mutual(found: dict[str, set[str]]) -> set[frozenset[str]]:
    return {frozenset({one, other}) for one in found for other in found[one] if one in found[other]}


def test_packages_of_the_appliance_import_what_the_map_allows():
    found = package_imports("appliance")
    assert set(found) == set(MAY_IMPORT)
    assert {package: extra for package, names in found.items() if (extra := names - GROUND - MAY_IMPORT[package])} == {}
    assert mutual(found) == set()


def test_packages_of_pages_that_import_each_other_are_listed():
    assert mutual(package_imports("web")) == MUTUAL_IN_WEB


@pytest.mark.parametrize("top", ["appliance", "web", "workers"])
def test_every_package_says_what_it_is(top):
    for path in ROOT.glob(f"{top}/**/__init__.py"):
        if not {"migrations", "templatetags", "management", "commands"} & set(path.parts):
            assert ast.get_docstring(ast.parse(path.read_text())), path


@pytest.mark.parametrize("path", EVERY)
def test_functions_have_at_most_75_lines(path):
    functions = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)]
    assert [node.name for node in functions if (node.end_lineno or 0) - node.lineno >= 75] == []


def test_templates_have_at_most_150_lines():
    assert [path for path in ROOT.glob("templates/**/*.html") if len(path.read_text().splitlines()) > 150] == []


def test_template_lines_have_at_most_120_columns():
    long = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in ROOT.glob("templates/**/*.html")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if len(line) > 120
    ]
    assert long == []


def scripts_run_inside() -> Iterator[tuple[str, str]]:
    """File and text of each line in a string of the system tests that imports something of Larder's."""
    for path in [
        *ROOT.glob("tests/system/**/*.py"),
        *ROOT.glob("tests/browser/**/*.py"),
        *ROOT.glob("tests/benchmarks/*.py"),
    ]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                for line in re.findall(r"from (?:appliance|web|workers)[\w.]* import [\w, ]+", node.value):
                    yield str(path.relative_to(ROOT)), line


@pytest.mark.parametrize(("file", "line"), sorted(set(scripts_run_inside())))
def test_what_tests_import_inside_the_appliance_is_there(file, line):
    """A rename leaves strings alone, and the system test would be the first to see it."""
    module, _, names = line.removeprefix("from ").partition(" import ")
    path = ROOT / module.replace(".", "/")
    source = path.with_suffix(".py") if path.with_suffix(".py").exists() else path / "__init__.py"
    for name in (part.partition(" as ")[0] for part in names.split(",")):
        defined = re.search(rf"^(class|def) {name.strip()}\b|^{name.strip()}\b.* = ", source.read_text(), re.MULTILINE)
        assert defined or (path / f"{name.strip()}.py").exists() or (path / name.strip()).is_dir(), f"{file}: {line}"
