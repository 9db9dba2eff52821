"""What the image of the containers is built from: all that its Dockerfile and deploy/install
read, from a clean clone."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from deploy.container import __main__ as container
from deploy.image import build

ROOT = Path(__file__).parents[3]


def read_by_install() -> set[str]:
    """Paths of the checkout that deploy/install names, and the folders that it packs."""
    text = (ROOT / "deploy/install").read_text()
    named = {name.rstrip("/") for name in re.findall(r'\$here"?/([A-Za-z0-9_./-]+)', text)}
    packed = re.search(r"tar -c --exclude=__pycache__ ([a-z. ]+)\)", text)
    assert packed
    return named | set(packed[1].split())


def test_there_is_something_to_compare():
    assert {"requirements.lock", "appliance", "manage.py", "deploy"} <= read_by_install()
    assert {"appliance", "deploy", "requirements.lock"} <= container.copied_paths()


def test_context_holds_everything_that_the_build_reads(tmp_path):
    container.fill_context(tmp_path)
    for name in (
        container.copied_paths()
        | read_by_install()
        | {container.DOCKERFILE, "docker-compose.yml", "deploy/install", "deploy/container/start"}
    ):
        assert (tmp_path / name).exists(), name


def test_context_holds_nothing_that_a_clean_clone_lacks(tmp_path):
    tracked = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    for name in container.copied_paths():
        assert any(file == name or file.startswith(f"{name}/") for file in tracked), name


def test_image_of_the_appliance_holds_everything_that_its_installation_reads():
    for name in read_by_install() - {"deploy"}:
        assert any(name == shipped or name.startswith(f"{shipped}/") for shipped in build.SHIPPED), name


def test_front_of_the_containers_is_the_site_without_the_server_on_port_80():
    script = (ROOT / "deploy/container/start").read_text()
    edits = re.findall(r"-e '([^']+)'", script)
    assert edits
    command = ["sed", *(word for edit in edits for word in ("-e", edit)), "deploy/nginx/larder.conf"]
    site = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "listen 80 " not in site
    assert "listen 8443 ssl default_server;" in site
    assert site.count("{") == site.count("}")
    used = set(re.findall(r"\$(larder_\w+)", site)) - set(re.findall(r"map \S+ \$(larder_\w+)", site))
    assert not used, f"defined in what is left out: {used}"
