"""Run by netatalk's unit before it starts: its file must name only what is mounted now, or an
empty folder would be served.

A file that was changed by hand is left as it is. Where facts cannot be read the volumes are taken out: better none than
the place beneath a locked folder.
"""

from __future__ import annotations

import sys

from appliance.errors import LarderError, Refused
from appliance.facts.box import Facts
from appliance.shares import afp, publish


def main() -> int:
    """0 where the file is right now. Raises nothing that it expects."""
    try:
        body = afp.render_config(publish.agreed_facts())
    except LarderError:
        body = afp.render_config(Facts())
    try:
        afp.SERVING.owned.write(body)
    except Refused:
        return 0
    except LarderError as error:
        sys.stderr.write(f"larder: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
