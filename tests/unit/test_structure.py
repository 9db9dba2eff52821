from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CODE = {package: sorted((ROOT / package).rglob("*.py")) for package in ("appliance", "web", "workers")}
EVERY = [path for paths in CODE.values() for path in paths]


def broken(paths: Iterable[Path], rule: Callable[[str], object]) -> dict[str, object]:
    """The files in whose text a rule finds something, with what it finds. One test for all: thousands take a minute."""
    return {str(path.relative_to(ROOT)): found for path in paths if (found := rule(path.read_text()))}


@cache  # several tests look at each module
def parsed(text: str) -> ast.Module:
    return ast.parse(text)


@cache
def imported(text: str) -> set[str]:
    """Full names of what a module imports, wherever in it."""
    found: set[str] = set()
    for node in ast.walk(parsed(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {"." * node.level + (node.module or "")} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def forbidden(text: str, *packages: str) -> set[str]:
    return {name for name in imported(text) if name.split(".", 1)[0] in packages}


@cache
def functions_of(text: str) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [node for node in ast.walk(parsed(text)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


@cache
def calls(text: str) -> set[str]:
    """Dotted names of what is called."""
    return {ast.unparse(node.func) for node in ast.walk(parsed(text)) if isinstance(node, ast.Call)}


def shells(text: str) -> list[int]:
    """Lines with a keyword ``shell`` that is not the constant False."""
    return [
        keyword.value.lineno
        for node in ast.walk(parsed(text))
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
    assert len(CODE["appliance"]) > 20
    assert ROOT / "appliance/command.py" in CODE["appliance"]


def test_the_appliance_knows_neither_django_nor_celery_nor_who_calls_it():
    others = ("django", "celery", "kombu", "redis", "web", "workers")
    assert broken(CODE["appliance"], lambda text: forbidden(text, *others)) == {}


def views_imported(text: str) -> set[str]:
    return {name for name in imported(text) if re.search(r"\bweb\.\w+\.(\w+_)?views\b", name)}


def test_the_workers_load_no_page():
    """Views bring their forms and whatever these need, and stay in memory."""
    assert views_imported("from web.box.views import show_box") and views_imported("from web.shares import smb_views")
    assert broken(CODE["workers"], views_imported) == {}


def test_the_web_does_not_know_the_workers_nor_load_celery():
    # Celery and its Redis library cost the web process 17 MiB (web/jobs/queue.py).
    assert broken(CODE["web"], lambda text: forbidden(text, "workers", "celery", "kombu", "redis")) == {}


# The agent's server forks for each request, and becomes the new code after an update.
MAY_START = {"appliance/agent/__main__.py": {"os.fork", "os.execv"}}


def test_one_place_only_starts_processes():
    others = [path for path in EVERY if path != ROOT / "appliance/command.py"]
    assert broken(others, starts_processes) == MAY_START


# Fields that hold JSON as text. The search looks through all that is known of a thing for what somebody typed.
IN_JSON = re.compile(r"\b(?:facts|operation|spec|plan|log|reading|fields)__(?:i?contains|i?regex|i?startswith)")
MAY_SEARCH = {"web/search/entries.py": ["facts__icontains"]}


def test_queries_go_by_columns_and_not_by_the_text_of_json():
    assert broken(EVERY, IN_JSON.findall) == MAY_SEARCH


def test_no_shell_anywhere():
    assert broken(EVERY, shells) == {}


def test_nothing_in_the_appliance_is_told_to_a_terminal():
    assert broken(CODE["appliance"], lambda text: "print" in calls(text)) == {}


def test_a_module_holds_one_concept_in_at_most_400_lines():
    assert broken(EVERY, lambda text: max(0, len(text.splitlines()) - 400)) == {}


def test_every_module_reads_annotations_as_text():
    assert broken(CODE["appliance"], lambda text: text and "__future__.annotations" not in imported(text)) == {}


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
    assert long_functions("def f():\n" + "    x\n" * 60) == ["f"]
    assert long_functions("def f():\n" + "    x\n" * 59) == []


# --- packages -----------------------------------------------------------------------------------------------------
# What each package of the appliance may import of the others.
# The ground (the modules at the top, facts, system) is open to all. No two packages import each other.
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
        "recovery",
        "rehearsal",
        "shares",
        "snapshots",
        "support",
        "users",
        "zfs",
    },
    "alerts": {"agent", "disks", "pools", "zfs"},
    "backups": {"datasets", "recovery", "shares", "snapshots", "zfs"},
    "benchmarks": {"disks", "files", "layout", "pools", "shares", "snapshots", "zfs"},
    "burn_in": {"benchmarks", "disks", "layout"},
    "datasets": {"files", "pools", "shares", "snapshots", "zfs"},
    "disks": {"layout", "zfs"},
    "facts": set(),
    "files": set(),
    "imports": {"backups", "datasets", "files", "pools", "snapshots", "zfs"},
    "layout": set(),
    "pools": {"disks", "layout", "shares", "zfs"},
    "recovery": {"datasets", "shares", "users", "zfs"},
    "rehearsal": {"benchmarks", "disks", "layout", "pools", "shares", "zfs"},
    "shares": {"zfs"},
    "snapshots": {"files", "shares", "zfs"},
    "support": {"disks", "pools"},
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


def long_functions(text: str) -> list[str]:
    return [node.name for node in functions_of(text) if (node.end_lineno or 0) - node.lineno >= 60]


def test_functions_have_at_most_60_lines():
    assert broken(EVERY, long_functions) == {}


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
        for node in ast.walk(parsed(path.read_text())):
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


# --- names --------------------------------------------------------------------------------------------------------
PROGRAM = [path for paths in CODE.values() for path in paths if "migrations" not in path.parts]
# Words that say nothing of what a module holds.
SAYS_NOTHING = {
    "again",
    "around",
    "against",
    "beside",
    "below",
    "care",
    "past",
    "ways",
    "why",
    "known",
    "named",
    "noticed",
    "every",
    "turns",
    "letters",
    "reach",
    "edits",
    "after",
    "ground",
    "honesty",
    "claims",
    "overdue",
    "present",
    "recorded",
    "changes",
    "pace",
    "details",
    "walk",
    "utils",
    "common",
    "misc",
    "helpers",
}
# Nouns of the field that end like a gerund, and what is said of something else.
NOUNS = {"caching", "formatting", "housekeeping", "listing", "masking", "paging", "sharing", "staging"}
ADJECTIVES = {"failing", "pending"}
NAMED_FOR_A_REASON = {"forms_common"}  # what several forms of pages have in common


def bad_words(name: str) -> set[str]:
    """What a name of a module should not be made of."""
    words = set(name.split("_"))
    gerunds = {word for word in words if word.endswith("ing") and len(word) > 5} - NOUNS - ADJECTIVES
    return gerunds | (set() if name in NAMED_FOR_A_REASON else words & SAYS_NOTHING)


def test_a_module_is_named_after_what_it_holds():
    assert {str(path.relative_to(ROOT)): found for path in PROGRAM if (found := bad_words(path.stem))} == {}
    assert bad_words("taking") | bad_words("schedule_utils") == {"taking", "utils"}


# What is written of them leaves out a secret, which a Struct's text cannot.
DATACLASSES = {"Secrets", "Target", "Tree", "TreeAct"}


def dataclasses_in(text: str) -> set[str]:
    """The names of the dataclasses of a module."""
    classes = [node for node in ast.walk(parsed(text)) if isinstance(node, ast.ClassDef)]
    return {one.name for one in classes if re.search(r"\bdataclass\b", " ".join(map(ast.unparse, one.decorator_list)))}


def test_records_are_structs():
    """A dataclass compiles its six methods at each start: 290 of them took a third of that of the pages, and 3 MiB."""
    assert dataclasses_in("@dataclass(frozen=True)\nclass Old: ...\nclass New(msgspec.Struct): ...") == {"Old"}
    assert set().union(*(dataclasses_in(path.read_text()) for path in PROGRAM)) == DATACLASSES


def test_most_functions_have_names_of_more_than_one_word():
    """The methods of a contract (plan, check, probe) are counted too: they are a fourth of those of one word."""
    names = [node.name for path in PROGRAM for node in functions_of(path.read_text()) if not node.name.startswith("__")]
    assert len([name for name in names if "_" not in name.strip("_")]) < 0.45 * len(names)


def test_few_names_of_classes_are_used_twice():
    names: dict[str, set[Path]] = {}
    for path in PROGRAM:
        for node in ast.walk(parsed(path.read_text())):
            if isinstance(node, ast.ClassDef) and node.name not in {"Meta", "Command"}:  # Django wants these
                names.setdefault(node.name, set()).add(path)
    assert len(twice := {name: paths for name, paths in names.items() if len(paths) > 1}) < 6, twice
