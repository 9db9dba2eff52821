"""Signing and encryption of SMB, as real clients find them."""

from __future__ import annotations

import urllib.parse

import pytest

from tests.system import sharing
from tests.system.sharing import Client

STATE = "share"

PAGE = "/shares/protection/"


@pytest.fixture(scope="module")
def box(visitor, appliance):
    sharing.make_pool(appliance, "tank", "photos")
    sharing.make_person(visitor, "anna")
    said = sharing.set_share(visitor, appliance, "tank/photos", name="photos", write="anna")
    assert said.startswith("Done."), said
    return appliance


def choose(visitor, **answers: str) -> None:
    review = visitor.get(f"{PAGE}?{urllib.parse.urlencode(answers)}")
    said = visitor.ended(visitor.confirm(review), timeout=240)
    assert said.startswith("Done."), said


def with_options(box, folder, *options: str) -> Client:
    client = Client(box, folder, "anna")
    client.who += [f"--option={option}" for option in options]
    return client


def test_encryption_for_everybody_turns_away_who_cannot(visitor, box, tmp_path):
    old = with_options(box, tmp_path, "client max protocol=SMB2_10")
    old.done("photos", "ls")
    choose(visitor, signing="required", encryption="required")
    said = box.run("testparm", "-s", "-v")
    assert "server smb encrypt = required" in said
    assert "server signing = required" in said or "server signing = mandatory" in said
    assert old.tried("photos", "ls")[0] != 0
    Client(box, tmp_path, "anna").done("photos", "ls")


def test_the_usual_choice_lets_older_ones_in_again_and_never_the_oldest(visitor, box, tmp_path):
    choose(visitor, signing="asked", encryption="desired")
    with_options(box, tmp_path, "client max protocol=SMB2_10").done("photos", "ls")
    oldest = with_options(box, tmp_path, "client min protocol=NT1", "client max protocol=NT1")
    assert oldest.tried("photos", "ls")[0] != 0
    choose(visitor, signing="asked", encryption="asked")
    assert "server smb encrypt" not in box.run("testparm", "-s")
