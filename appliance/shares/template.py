"""A configuration file's text as a template. Jinja2 is loaded and the text compiled when it is first rendered: each
request to the agent is a new process, and few of them render anything."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import jinja2


class Template:
    """``text`` in Jinja2's grammar. A name that is not given is an error.
    Nothing is escaped: values have strict grammars."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def compiled(self) -> jinja2.Template:
        from jinja2 import Environment, StrictUndefined

        # not HTML
        plain = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False)  # noqa: S701
        return plain.from_string(self.text)

    def render(self, **values: object) -> str:
        return self.compiled.render(**values)
