"""What is set on a pool: read it, say it in plain words, set what a person may sensibly set."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal

import msgspec

from appliance import names
from appliance.errors import Reason, Refused
from appliance.facts.box import Facts, PoolProperties
from appliance.message import Message
from appliance.operation import Plan, command_step, never
from appliance.pools.scrub import MaintenanceOperation, check_pool
from appliance.zfs import json_output
from appliance.zfs.scan_status import parse_number

EXPANSION = "feature@raidz_expansion"  # disabled, enabled, active
ASKED = ("autotrim", "autoexpand", "autoreplace", "failmode", "comment", EXPANSION)
LONGEST_COMMENT = 32  # ZPROP_MAX_COMMENT, include/sys/fs/zfs.h
Name = Literal["autotrim", "autoexpand", "autoreplace", "comment"]


class PoolPropertyWords(msgspec.Struct, frozen=True):
    """A property as people know it. ``said`` puts each value in words; a switch is set with on and off."""

    title: str
    meaning: str
    said: dict[str, str]
    switch: bool = True


KNOWN: dict[str, PoolPropertyWords] = {
    "autotrim": PoolPropertyWords(
        Message("Trim as files are deleted"),
        Message(
            "Solid-state disks stay fast when they learn which blocks are free. On cheap ones this costs "
            "speed; a trim once a month does nearly as well. Hard disks need neither."
        ),
        {"on": Message("on"), "off": Message("off")},
    ),
    "autoexpand": PoolPropertyWords(
        Message("Grow when all disks of a group are larger"),
        Message(
            "After the last small disk of a group has been replaced with a larger one, the new space is used "
            "at once. It cannot shrink again."
        ),
        {"on": Message("on"), "off": Message("off")},
    ),
    "autoreplace": PoolPropertyWords(
        Message("Rebuild onto a new disk in the same slot by itself"),
        Message(
            "A new disk in the place of a failed one is erased and used without asking. Leave it off unless "
            "nobody ever puts a disk with data into this box."
        ),
        {"on": Message("on"), "off": Message("off")},
    ),
    "failmode": PoolPropertyWords(
        Message("When too many disks fail"),
        Message("What ZFS does when the pool cannot work any more."),
        {
            "wait": Message("everything waits until the disks are back: nothing is lost silently"),
            "continue": Message("new writes fail at once, reads go on where they can"),
            "panic": Message("the whole box stops"),
        },
        switch=False,
    ),
    "comment": PoolPropertyWords(
        Message("Note"),
        Message("A few words that travel with the disks: whose they are, what they hold."),
        {},
        switch=False,
    ),
}

WARNINGS = {
    "autoreplace": Message(
        "From then on, whatever disk is put in the place of a failed one is erased without a question, also "
        "one that holds somebody's files."
    ),
    "autoexpand": Message(
        "When all disks of a group are larger, the pool grows at once. Smaller disks can then no longer replace them."
    ),
}


def parse_properties(found: Mapping[str, Any]) -> Iterator[PoolProperties]:
    """The pools of a ``zpool get -j`` object with what was asked."""
    for name, raw in (found.get("pools") or {}).items():
        values = {
            key: str((value or {}).get("value", ""))
            for key, value in (raw.get("properties") or {}).items()
            if key in ASKED
        }
        yield PoolProperties(
            str(name),
            parse_number(raw.get("pool_guid")),
            {key: "" if value == "-" else value for key, value in values.items()},
        )


def read_properties() -> tuple[PoolProperties, ...]:
    """What is set on every imported pool, now. Raises Failed."""
    argv = ["zpool", "get", "-j", "--json-int", ",".join(ASKED)]
    return tuple(parse_properties(json_output.read_json(argv, timeout=20, may_be_empty=True)))


def lacks_expansion(values: Mapping[str, str]) -> bool:
    """Whether no raidz of the pool with these properties can be expanded. What was not read counts as there."""
    return values.get(EXPANSION, "enabled") not in {"enabled", "active"}


class SetPoolProperty(MaintenanceOperation, tag="set-pool-property"):
    """Set one property of a pool. Others can harm, so they cannot be asked for."""

    needs_proof = never

    name: Name
    value: str
    verb: ClassVar[str] = Message("Change a setting of")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.name == "comment":
            names.refuse_invisible_characters(self.value, "value")
            if not re.fullmatch(r"[\x20-\x7e]*", self.value):
                raise Refused(
                    Reason(
                        "comment-not-ascii",
                        "ZFS stores only plain letters, digits and signs here, without accents.",
                        field="value",
                    )
                )
            if len(self.value) > LONGEST_COMMENT:
                raise Refused(
                    Reason(
                        "comment-too-long",
                        "A note has at most {count} characters.",
                        field="value",
                        count=LONGEST_COMMENT,
                    )
                )
        elif self.value not in {"on", "off"}:
            raise Refused(Reason("value-not-on-off", "Choose on or off.", field="value"))

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from check_pool(self.pool, facts)
        pool = facts.pool(self.pool)
        if pool and self.name == "autotrim" and self.value == "on" and not pool.can_trim:
            yield Reason(
                "trim-not-possible",
                "No disk of {pool} can be trimmed. Hard disks do not need it.",
                field="value",
                pool=self.pool,
            )

    def plan(self, facts: Facts) -> Plan:
        what = KNOWN[self.name].title
        step = command_step(
            "set",
            Message("Set “{what}” to “{value}”", what=what, value=self.value)
            if self.value
            else Message("Clear “{what}”", what=what),
            # zpool set takes no “--” before its operands (zpool_do_set looks at argv[1] itself).
            ["zpool", "set", f"{self.name}={self.value}", self.pool],
            affects=[self.pool],
            undo=Message("It can be set back at any time."),
        )
        return Plan(
            summary=Message(
                "{what}: {value}. {meaning}",
                what=what,
                value=self.value or Message("nothing"),
                meaning=KNOWN[self.name].meaning,
            ),
            steps=(step,),
            identity=self.identity(facts),
            warnings=(WARNINGS[self.name],) if self.grave else (),
            undo=Message("It can be set back at any time."),
        )

    @property
    def grave(self) -> bool:
        """Whether what it sets in motion later cannot be taken back, so that a person should see it before."""
        return self.name in WARNINGS and self.value == "on"

    def probe(self, step: str, facts: Facts) -> bool:
        return facts.properties_of(self.pool).get(self.name) == self.value

    def recovery_hint(self, step: str, facts: Facts) -> str:
        now = facts.properties_of(self.pool).get(self.name, Message("not known"))
        return Message(
            "The value is {now} now. Set it again if that is not what you want.", now=now or Message("empty")
        )
