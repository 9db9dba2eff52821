"""How the review page asks for a secret, and the words for new ones."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from appliance.backups.pairing import codes
from appliance.imports.settings import check_password
from appliance.shares.iscsi.part import LONGEST_SECRET, SHORTEST_SECRET, check_chap_secret
from web.translation import lazy_format, lazy_text


class Secret(msgspec.Struct, frozen=True):
    """How the review page asks for a secret: typed twice where it is a new one. ``password``: for signing
    in to shares, with the grammar of those; otherwise a passphrase, unless ``check`` says otherwise.
    ``field`` is its name in the form."""

    label: str
    help: str
    twice: bool
    password: bool = False
    field: str = "secret"
    check: Callable[..., str] | None = None

    @property
    def again(self) -> str:
        """The name of the field for typing it once more."""
        return self.field.replace("secret", "again", 1)


PAIRING_CODE = Secret(
    lazy_text("Code"),
    lazy_text("The other Larder shows it under Backups, Received copies."),
    twice=False,
    check=codes.spell_code,
)
SOURCE_PASSWORD = Secret(
    lazy_text("Password of the user over there"),
    lazy_text(
        "Larder stores it for root alone until the import is removed, so that it can go on after an interruption."
    ),
    twice=False,
    check=check_password,
)
CHAP_SECRET = Secret(
    lazy_text("Secret"),
    lazy_format(
        "{least} to {most} letters, digits or signs. It is typed on the other computer.",
        least=SHORTEST_SECRET,
        most=LONGEST_SECRET,
    ),
    twice=True,
    check=check_chap_secret,
)
NEW_PASSPHRASE = Secret(
    lazy_text("New passphrase"),
    lazy_text("It unlocks the folder after every start. Nobody can help you if you lose it: write it down."),
    twice=True,
)
# The file that holds a key takes the place of a passphrase. A new one wants proof that it was saved.
NEW_KEY_FILE = Secret(
    lazy_text("The key file you have just saved"),
    lazy_text(
        "Choose it here, so that Larder sees that you have it. Store it in two places outside this box: without it "
        "the files are lost, and nobody can help."
    ),
    twice=True,
)
POOL_PASSPHRASE = Secret(
    lazy_text("Passphrase"),
    lazy_text("It unlocks the pool after every start. Nobody can help you if you lose it: write it down."),
    twice=True,
)
POOL_KEY_FILE = Secret(
    lazy_text("The key file you have just saved"),
    lazy_text(
        "Choose it here, so that Larder sees that you have it. It unlocks the pool after every start. Store it in two "
        "places outside this box: without it the data is lost, and nobody can help."
    ),
    twice=True,
)
