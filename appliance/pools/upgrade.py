"""Switching on what newer ZFS offers a pool: it cannot be switched off again, and older
systems may not read the pool."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from msgspec.structs import replace

from appliance import command
from appliance.errors import Failed, Reason
from appliance.facts.box import Facts
from appliance.message import Message
from appliance.operation import Plan, Step, Work, never
from appliance.pools import features
from appliance.pools.base import PoolOperation


class UpgradePool(PoolOperation, tag="upgrade-pool"):
    """Enable every feature that this system knows and the pool's compatibility setting allows."""

    needs_proof = never

    @property
    def title(self) -> str:
        return Message("Upgrade {pool}", pool=self.pool)

    def load_extra_facts(self, facts: Facts) -> Facts:
        pool = self.find_pool(facts)
        return replace(facts, details=(features.read_pool_detail(pool),)) if pool else facts

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from super().check(facts)
        if self.find_pool(facts) is None:
            return
        detail = facts.detail(self.guid)
        if detail is None:
            yield Reason(
                "pool-features-not-read",
                "Larder has not read the features of {pool} yet. Look at its page again in a moment.",
                pool=self.pool,
            )
        elif not detail.features_off:
            if detail.compatibility == "off":
                yield Reason("pool-has-all-features", "{pool} has every feature that ZFS here knows.", pool=self.pool)
            else:
                yield Reason(
                    "pool-stays-readable",
                    "{pool} has every feature that it may have: it is meant to stay readable for {systems}.",
                    pool=self.pool,
                    systems=detail.compatibility,
                )

    def plan(self, facts: Facts) -> Plan:
        detail = facts.detail(self.guid)
        assert detail is not None  # noqa: S101  # check said so
        argv = ["zpool", "upgrade", self.pool]

        def act(work: Work) -> None:
            for line in command.run(argv, timeout=300).stdout.splitlines():
                work.note(line)
            pool = facts.pool_of(self.guid)
            left = features.read_pool_detail(pool).features_off if pool else ()
            if left:
                raise Failed(Message("{pool} still lacks {left}", pool=self.pool, left=", ".join(left)))

        return Plan(
            summary=Message(
                "{pool} gets {count} features of the ZFS on this box. Its files stay as they are.",
                pool=self.pool,
                count=len(detail.features_off),
            )
            if len(detail.features_off) != 1
            else Message("{pool} gets 1 feature of the ZFS on this box. Its files stay as they are.", pool=self.pool),
            steps=(
                Step(
                    "upgrade",
                    Message("Switch on the new features of {pool}", pool=self.pool),
                    shlex.join(argv),
                    act,
                    (self.pool,),
                ),
            ),
            identity={**self.identity(), "features": list(detail.features_off)},
            warnings=(
                Message(
                    "It cannot be undone. Systems with an older ZFS (an older NAS, an old rescue stick, "
                    "FreeBSD or macOS of some years ago) may then no longer be able to read this pool. If "
                    "its disks may have to go to such a system, do not upgrade."
                ),
                Message(
                    "Nothing is wrong with a pool that is not upgraded. Upgrade when you want one of the "
                    "features, and when you are sure that you will not go back to an older system."
                ),
            ),
            undo=Message("There is no way back."),
            type_to_confirm=self.pool,
            details={Message("New features"): ", ".join(detail.features_off)},
        )

    def probe(self, step: str, facts: Facts) -> bool:
        detail = facts.detail(self.guid)
        return detail is not None and not detail.features_off

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return Message("{pool} works as before, with some features still off. Upgrade it again.", pool=self.pool)
