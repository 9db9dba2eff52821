"""The recovery phrase: how it is spelled, typed back and turned into a key that the real age takes."""

from __future__ import annotations

import shutil

import pytest

from appliance import command
from appliance.errors import Refused
from appliance.recovery import phrase, seal
from tests.reasons import expect_refusal

# Made by make_phrase; the recipient as age-keygen 1.1.1 prints it for its identity.
PHRASE = "E8HJ-N9GE-7ARV-QS1X-2N7K-VJHC-XA8B"
RECIPIENT = "age195tgk6mzdgjtj59dzwznhyfa6yq3lvw9smm26vd5v7g5wctt0prswrj4fw"
needs_age = pytest.mark.skipif(shutil.which("age") is None, reason="age is not installed")


def test_phrase_has_seven_groups_and_is_never_the_same():
    made = {phrase.make_phrase() for _try in range(200)}
    assert len(made) == 200
    for one in made:
        assert [len(group) for group in one.split("-")] == [4] * 7
        assert phrase.spell_phrase(one) == one


@pytest.mark.parametrize(
    "typed", [PHRASE.lower(), PHRASE.replace("-", ""), f"  {PHRASE.replace('-', ' ')}\n", PHRASE.replace("1", "l")]
)
def test_phrase_is_read_however_it_is_typed(typed):
    assert phrase.spell_phrase(typed) == PHRASE


def test_every_single_mistyped_character_is_noticed_nearly_always():
    digits = PHRASE.replace("-", "")
    noticed = 0
    for at, right in enumerate(digits):
        for wrong in phrase.ALPHABET:
            if wrong != right:
                try:
                    phrase.read_phrase(digits[:at] + wrong + digits[at + 1 :])
                except Refused:
                    noticed += 1
    assert noticed >= len(digits) * 31 - 3  # one of 1024 passes, and then does not open anything


@pytest.mark.parametrize("typed", ["", "E8HJ", PHRASE + "A", "U" * 28, "é" * 28, "0" * 10_000, "\0" * 28])
def test_what_is_no_phrase_is_refused(typed):
    with expect_refusal("phrase-incomplete"):
        phrase.read_phrase(typed)


def test_bech32_is_as_in_bip_173():
    assert phrase.bech32("a", b"") == "a12uel5l"
    assert phrase.bech32("abcdef", bytes.fromhex("00443214c74254b635cf84653a56d7c675be77df")) == (
        "abcdef1qpzry9x8gf2tvdw0s3jn54khce6mua7lmqqqxw"
    )


@needs_age
def test_phrase_becomes_the_same_key_in_every_version():
    assert seal.recipient_of(PHRASE) == RECIPIENT


@needs_age
def test_sealed_text_opens_with_the_phrase_alone():
    sealed = seal.seal('{"naïve": 1}'.encode(), [RECIPIENT])
    assert b"na\xc3\xafve" not in sealed
    assert seal.open_sealed(sealed, PHRASE.lower()) == '{"naïve": 1}'.encode()
    with expect_refusal("phrase-does-not-open"):
        seal.open_sealed(sealed, phrase.make_phrase())


@needs_age
def test_text_sealed_for_two_phrases_opens_with_each():
    other = phrase.make_phrase()
    sealed = seal.seal(b"both", [RECIPIENT, seal.recipient_of(other)])
    assert seal.open_sealed(sealed, PHRASE) == seal.open_sealed(sealed, other) == b"both"


@needs_age
@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: text[:-60],
        lambda text: text.replace(text[200:204], b"AAAA"),
        lambda _text: b"",
        lambda _text: b"\xff" * 500,
    ],
)
def test_spoiled_text_is_refused(spoil):
    sealed = seal.seal(b"x" * 1000, [RECIPIENT])
    with expect_refusal("phrase-does-not-open"):
        seal.open_sealed(spoil(sealed), PHRASE)


@needs_age
def test_neither_phrase_nor_key_nor_text_is_in_an_argument_or_the_log(monkeypatch, caplog):
    caplog.set_level("DEBUG")
    ran: list[str] = []
    real = command.run
    monkeypatch.setattr(command, "run", lambda argv, **options: (ran.extend(argv), real(argv, **options))[1])
    seal.open_sealed(seal.seal(b"the secret text", [seal.recipient_of(PHRASE)]), PHRASE)
    said = " ".join(ran) + caplog.text
    for secret in (PHRASE, PHRASE.replace("-", ""), phrase.identity_of(PHRASE), "secret text", "SECRET-KEY"):
        assert secret not in said
