"""Pictures of the pages, and which of them differ from the approved ones or from those of another commit.

Pictures are taken and approved on the same machine, below ``build/gallery``, and are never committed: fonts, their
smoothing and the version of Chromium differ from machine to machine, so a stored picture would fail where nothing is
wrong. The recorded boxes and the clock are the same at each run, so every difference comes from the code.
"""

from __future__ import annotations

import base64
import html
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from playwright.sync_api import Browser, Page

from tests.gallery.pages import SHOWN, SIGNED_OUT
from tests.gallery.server import serving
from tests.gallery.window import HEIGHT, Gallery

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build/gallery"
NOW, APPROVED = FOLDER / "now", FOLDER / "approved"
BOXES, WIDTHS, THEMES = ("healthy", "degraded"), (320, 1280), ("light", "dark")
# A pixel differs where a channel does by more than this, and a picture where more of its pixels do than this share.
CHANNEL, SHARE = 24, 0.0002
COMPARE = """async ([before, now, channel]) => {
  const [one, other] = await Promise.all([before, now].map(async (data) => {
    const image = new Image();
    image.src = `data:image/png;base64,${data}`;
    await image.decode();
    const canvas = Object.assign(document.createElement("canvas"), { width: image.width, height: image.height });
    const pen = canvas.getContext("2d");
    pen.drawImage(image, 0, 0);
    return pen.getImageData(0, 0, image.width, image.height);
  }));
  if (one.width !== other.width || one.height !== other.height) return 1;
  let differ = 0;
  for (let at = 0; at < one.data.length; at += 4)
    if ([0, 1, 2].some((part) => Math.abs(one.data[at + part] - other.data[at + part]) > channel)) differ++;
  return differ / (one.data.length / 4);
}"""


def take(browser: Browser, folder: Path, names: Iterable[str], root: Path = ROOT) -> None:
    """Make the pictures of the first sample of these pages, by the code in ``root``."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with serving(root) as address:
        gallery = Gallery(browser, address)
        for box in BOXES:
            gallery.open_box(box)
            assert gallery.context
            page = gallery.context.new_page()
            for name in names:
                for path in gallery.samples.get(name, [])[:1] if name not in SIGNED_OUT else ():
                    take_one(page, path, folder, f"{box}-{name}")
        gallery.close()


def take_one(page: Page, path: str, folder: Path, name: str) -> None:
    """One page at each width in both themes."""
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": HEIGHT})
        page.goto(path)
        for theme in THEMES:
            page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
            page.screenshot(path=folder / f"{name}-{width}-{theme}.png", full_page=True)


def take_of_commit(browser: Browser, commit: str, names: Iterable[str]) -> Path:
    """The pictures of another commit, looked at with the gallery of this one."""
    folder = FOLDER / "before"
    with tempfile.TemporaryDirectory() as temporary:
        tree = Path(temporary) / "tree"
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", tree, commit], cwd=ROOT, check=True)
        try:
            shutil.copytree(Path(__file__).parent, tree / "tests/gallery", dirs_exist_ok=True)
            take(browser, folder, names, tree)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", tree], cwd=ROOT, check=True)
    return folder


def compare(browser: Browser, before: Path, now: Path) -> dict[str, str]:
    """What became of each picture that is not as before: how much of it, or that it is new or gone."""
    window = browser.new_page()
    found = {}
    for name in sorted({path.name for folder in (before, now) for path in folder.glob("*.png")}):
        if not (before / name).exists():
            found[name] = "new"
        elif not (now / name).exists():
            found[name] = "gone"
        else:
            pair = [base64.b64encode((folder / name).read_bytes()).decode() for folder in (before, now)]
            share = window.evaluate(COMPARE, [*pair, CHANNEL])
            if share > SHARE:
                found[name] = "another size" if share == 1 else f"{share:.2%} differs"
    window.close()
    return found


def write_page(found: dict[str, str], before: Path, now: Path) -> Path:
    """A page that shows each of them as before and now, side by side."""
    rows = "".join(
        f"<h2>{html.escape(name)}: {what}</h2><p>"
        + "".join(
            f'<img src="{folder.name}/{html.escape(name)}">' for folder in (before, now) if (folder / name).exists()
        )
        for name, what in found.items()
    )
    path = FOLDER / "index.html"
    path.write_text(
        f"<!doctype html><style>img {{ max-width: 49%; vertical-align: top; border: 1px solid }}</style>{rows}"
    )
    return path


def approve() -> None:
    """Take the pictures that were made last as the approved ones."""
    shutil.rmtree(APPROVED, ignore_errors=True)
    shutil.copytree(NOW, APPROVED)


def chosen(names: list[str]) -> list[str]:
    """The pages of these names; all where none is given."""
    return [name for name in SHOWN if name in names or not names]
