"""What the pages know of an operation, by kind of operation."""

from __future__ import annotations

import msgspec

from web.jobs.secret_fields import Secret


class Away(msgspec.Struct, frozen=True):
    """What the page of a job says that takes the box away: the headline, what to expect, ``lost`` once it is silent."""

    headline: str
    text: str
    lost: str


class OperationUi(msgspec.Struct, frozen=True):
    """The route and the label of the link when it is done; its secret as typed, and as a file where its key is one.

    ``steps``: the titles of the wizard's steps, of which its review is number ``review_at``. ``followed``: its job is
    followed on the page that asked for it, which shows the other steps too.
    """

    route: str
    link: str
    secret: Secret | None = None
    key_file: Secret | None = None
    steps: tuple[str, ...] = ()
    review_at: int = -1
    followed: bool = False
    made: bool = False  # its subject is a folder that it has made: the link leads there
    away: Away | None = None
