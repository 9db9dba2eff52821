"""What a pool can store decides the flags of a stream; an answer that does not say it stops the run."""

from __future__ import annotations

import pytest

from appliance import command
from appliance.backups.transfer import FEATURES, read_features, send_flags
from appliance.errors import Failed

# As `zpool get -H -o property,value feature@…` of OpenZFS 2.3.9 answers.
ANSWER = """\
feature@large_blocks\tenabled
feature@embedded_data\tactive
feature@lz4_compress\tactive
feature@zstd_compress\tenabled
"""


def answering(monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    monkeypatch.setattr(command, "run", lambda argv, **_more: command.Result(tuple(argv), 0, said, "", 0.0))


def test_features_of_a_pool_are_read(monkeypatch):
    answering(monkeypatch, ANSWER)
    found = read_features("tank")
    assert set(found) == set(FEATURES)
    assert send_flags(found, raw=False, into_encrypted=False) == ("-L", "-e", "-c")


def test_pool_without_one_of_them_gets_plain_streams(monkeypatch):
    answering(monkeypatch, ANSWER.replace("zstd_compress\tenabled", "zstd_compress\tdisabled"))
    assert send_flags(read_features("tank"), raw=False, into_encrypted=False) == ()


@pytest.mark.parametrize(
    "said",
    [
        "",
        ANSWER.replace("feature@large_blocks\tenabled\n", ""),
        ANSWER.replace("enabled", "-"),
        ANSWER.replace("\t", " "),
        f"{ANSWER}feature@other\tactive\n",
    ],
    ids=["nothing", "one less", "no state", "no columns", "one more"],
)
def test_answer_that_does_not_say_it_fails(said, monkeypatch):
    answering(monkeypatch, said)
    with pytest.raises(Failed, match="what the pool tank can store"):
        read_features("tank")
