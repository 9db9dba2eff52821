"""The base of everything that is sent to the agent: frozen, fields by name alone, unknown fields refused."""

from __future__ import annotations

from typing import Any, dataclass_transform

import msgspec


class StrictMeta(msgspec.StructMeta):
    """Gives each subclass the options of the base; msgspec itself does not inherit ``kw_only``."""

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any) -> StrictMeta:
        strict = {"frozen": True, "kw_only": True, "forbid_unknown_fields": True}
        return super().__new__(cls, name, bases, namespace, **(strict | options))


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class StrictStruct(msgspec.Struct, metaclass=StrictMeta, frozen=True, kw_only=True):
    """A struct that cannot change and that refuses what it does not know."""
