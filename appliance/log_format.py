"""How Larder's programs write into the journal: each line begins with its severity, so that the
journal can be filtered by it.

Without it every line of a service has the same one. (sd-daemon(3): ``<4>`` and so on, kept by SyslogLevelPrefix=)
"""

from __future__ import annotations

import logging
import os

FORMAT = "%(levelname)s %(name)s: %(message)s"
# From the level on: syslog's number.
PRIORITIES = ((logging.CRITICAL, 2), (logging.ERROR, 3), (logging.WARNING, 4), (logging.INFO, 6), (0, 7))


class JournalFormatter(logging.Formatter):
    """A record as text; with the severity in front of every line of it where the journal reads them."""

    def __init__(self, fmt: str = FORMAT) -> None:
        super().__init__(fmt)
        self.marked = "JOURNAL_STREAM" in os.environ  # systemd.exec(5)

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        if not self.marked:
            return text
        priority = next(number for level, number in PRIORITIES if record.levelno >= level)
        return "\n".join(f"<{priority}>{line}" for line in text.splitlines())


def log_to_journal() -> None:
    """Have a program without settings of Django's write its log as the others do."""
    handler = logging.StreamHandler()
    handler.setFormatter(JournalFormatter())
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
