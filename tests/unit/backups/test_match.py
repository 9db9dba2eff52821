"""What a run sends, by guids: against a model of what ZFS accepts, over random histories."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from appliance.backups.match import Copy, Decision, Point, Token, conflict, decide
from appliance.errors import Reason
from appliance.facts.copy_mark import CopyMark

SOURCE, GUID = "tank/photos", 7
MARK = CopyMark(GUID, raw=False)
TARGET = Copy("safe/backups/photos", exists=True, mark=MARK)


def points(*guids: int) -> list[Point]:
    return [Point(f"{SOURCE}@s{guid}", guid) for guid in guids]


def base_of(found: Decision | Reason) -> str:
    assert isinstance(found, Decision), found
    return found.base


def code(found: Decision | Reason | None) -> str:
    return found.code if isinstance(found, Reason) else found.kind if found else ""


def test_first_copy_is_sent_whole():
    assert decide(SOURCE, points(1), 1, False, Copy("safe/backups/photos")) == Decision("full")


def test_later_copy_continues_from_the_newest_snapshot_of_the_copy():
    copy = replace(TARGET, guids=(1, 2))
    assert decide(SOURCE, points(1, 2, 3), 3, False, copy) == Decision("increment", base=f"{SOURCE}@s2")


def test_bookmark_stands_in_for_a_snapshot_that_is_gone():
    found = [*points(3), Point(f"{SOURCE}#larder-backup-0123abcd-2", 2)]
    assert (
        base_of(decide(SOURCE, found, 3, False, replace(TARGET, guids=(1, 2)))) == f"{SOURCE}#larder-backup-0123abcd-2"
    )


def test_snapshot_is_preferred_to_its_bookmark():
    found = [*points(2, 3), Point(f"{SOURCE}#mark", 2)]
    assert base_of(decide(SOURCE, found, 3, False, replace(TARGET, guids=(2,)))) == f"{SOURCE}@s2"


def test_names_do_not_matter_only_guids():
    found = [Point(f"{SOURCE}@renamed", 2), *points(3)]
    assert base_of(decide(SOURCE, found, 3, False, replace(TARGET, guids=(2,)))) == f"{SOURCE}@renamed"


def test_snapshot_whose_name_another_has_at_the_copy_is_refused_by_its_name():
    """ZFS would refuse the stream: what arrives is called as at the source."""
    copy = replace(TARGET, guids=(1, 2), names=("s3", "s2"))
    found = decide(SOURCE, points(1, 2, 3), 3, False, copy)
    assert code(found) == "backup-name-there"
    assert isinstance(found, Reason) and "another snapshot called s3" in found.text
    # The next run's snapshot is called otherwise, and goes on from the same base.
    assert base_of(decide(SOURCE, points(1, 2, 3, 4), 4, False, copy)) == f"{SOURCE}@s2"


def test_snapshot_that_has_arrived_is_no_other_whatever_it_is_called():
    for names in (("s1", "s2"), ("s2", "s1"), ("s1", "renamed")):
        assert decide(SOURCE, points(1, 2), 2, False, replace(TARGET, guids=(1, 2), names=names)) == Decision("arrived")


def test_copy_that_got_a_snapshot_of_its_own_is_diverged_and_no_name_is_taken():
    copy = replace(TARGET, guids=(1, 2, 99), names=("s1", "s2", "mine"))
    assert code(decide(SOURCE, points(1, 2), 2, False, copy)) == "backup-diverged"


def test_name_of_the_copys_base_may_be_that_of_another_snapshot_at_the_source():
    """A base is found by its guid alone: here somebody has exchanged the names."""
    found = [Point(f"{SOURCE}@s2", 1), Point(f"{SOURCE}@s1", 2), *points(3)]
    assert base_of(decide(SOURCE, found, 3, False, replace(TARGET, guids=(1, 2), names=("s1", "s2")))) == f"{SOURCE}@s1"


def test_source_that_was_rolled_back_is_a_question_not_a_stream():
    assert code(decide(SOURCE, points(1, 9), 9, False, replace(TARGET, guids=(1, 2)))) == "backup-diverged"


def test_copy_without_anything_in_common_is_a_question():
    assert code(decide(SOURCE, points(9), 9, False, replace(TARGET, guids=(1, 2)))) == "backup-no-common-snapshot"


def test_copy_without_any_snapshot_is_a_question():
    assert code(decide(SOURCE, points(1), 1, False, TARGET)) == "backup-copy-empty"


def test_place_of_somebody_else_is_refused():
    assert code(conflict(SOURCE, GUID, False, replace(TARGET, mark=None, guids=(1,)))) == "backup-target-taken"
    assert code(conflict(SOURCE, GUID, False, replace(TARGET, mark=CopyMark(8, raw=False)))) == "backup-target-of-other"
    assert code(conflict(SOURCE, GUID, True, TARGET)) == "backup-mode-changed"
    assert code(conflict(SOURCE, GUID, False, replace(TARGET, written=1))) == "backup-target-changed"
    assert conflict(SOURCE, GUID, False, TARGET) is None
    assert conflict(SOURCE, GUID, False, Copy("x")) is None


def test_first_copy_that_was_interrupted_is_not_taken_for_changed():
    # OpenZFS 2.3.9 keeps the properties of an interrupted first receive, and counts what has arrived as written.
    half = replace(TARGET, written=30_000_000, token=Token("1-abc", 1, f"{SOURCE}@s1"))
    assert conflict(SOURCE, GUID, False, half) is None
    assert conflict(SOURCE, GUID, False, replace(half, mark=None)) is None
    assert code(conflict(SOURCE, GUID, False, replace(half, guids=(1,)))) == "backup-target-changed"


def test_interrupted_copy_goes_on():
    token = Token("1-abc", 3, f"{SOURCE}@s3", from_guid=2)
    copy = replace(TARGET, guids=(2,), token=token)
    assert decide(SOURCE, points(2, 3, 4), 4, False, copy) == Decision("resume", token="1-abc")  # no password


def test_first_copy_that_was_interrupted_before_its_mark_goes_on():
    copy = Copy("safe/backups/photos", exists=True, token=Token("1-abc", 3, f"{SOURCE}@s3"))
    assert conflict(SOURCE, GUID, False, copy) is None
    assert code(decide(SOURCE, points(3), 3, False, copy)) == "resume"


def test_token_that_does_not_equal_the_plan_is_discarded():
    good = Token("1-abc", 3, f"{SOURCE}@s3", from_guid=2)
    for token in (
        replace(good, to_guid=99),  # its snapshot is gone
        replace(good, to_name="tank/secret@s3"),  # of another dataset
        replace(good, to_name=f"{SOURCE}@s4"),  # the name was given to another snapshot
        replace(good, from_guid=1),  # continues from elsewhere
        replace(good, raw=True),  # would be sent in another way
    ):
        copy = replace(TARGET, guids=(2,), token=token)
        assert code(decide(SOURCE, points(1, 2, 3, 4), 4, False, copy)) == "discard"


def test_token_of_an_encrypted_copy_that_asks_for_plain_is_discarded():
    copy = Copy("x", exists=True, mark=CopyMark(GUID, raw=True), token=Token("1-abc", 3, f"{SOURCE}@s3"))
    assert code(decide(SOURCE, points(3), 3, True, copy)) == "discard"


# --- random histories -----------------------------------------------------------------------------------------------
@dataclass
class World:
    """A source and its copy as ZFS keeps them: guids in order, and what was ever the source's."""

    source: list[int] = field(default_factory=list)
    marks: list[int] = field(default_factory=list)
    copy: list[int] = field(default_factory=list)
    ever: set[int] = field(default_factory=set)
    next: int = 1

    def snapshot(self) -> int:
        self.source.append(self.next)
        self.ever.add(self.next)
        self.next += 1
        return self.source[-1]

    def back_up(self) -> str:
        wanted = self.snapshot()
        self.marks.append(wanted)
        target = Copy("c", exists=bool(self.copy), mark=MARK if self.copy else None, guids=tuple(self.copy))
        found = decide(SOURCE, [*points(*self.source), *points(*self.marks)], wanted, False, target)
        if isinstance(found, Reason):
            return found.code
        if found.kind == "increment":
            base = int(found.base.rpartition("s")[2])
            assert base == self.copy[-1], "ZFS takes an increment only onto the newest snapshot"
        else:
            assert found.kind == "full" and not self.copy
        self.copy.append(wanted)
        self.marks = [wanted]
        return "arrived"


ACTS = st.lists(
    st.tuples(
        st.sampled_from(["write", "backup", "prune", "roll back", "prune copy", "touch copy"]), st.integers(0, 99)
    ),
    max_size=40,
)


@settings(max_examples=300)
@given(ACTS)
def test_whatever_happens_the_copy_only_gets_what_was_the_sources_and_loses_nothing(acts):
    world, foreign = World(), False
    for act, number in acts:
        before = list(world.copy)
        if act == "write":
            world.snapshot()
        elif act == "prune" and world.source:
            world.source.pop(number % len(world.source))
        elif act == "roll back" and world.source:
            del world.source[number % len(world.source) + 1 :]
            world.marks = [one for one in world.marks if not world.source or one <= world.source[-1]]
        elif act == "prune copy" and len(world.copy) > 1:
            world.copy.pop(number % (len(world.copy) - 1))  # retention keeps the newest
            continue
        elif act == "touch copy" and world.copy:
            world.copy.append(1000 + world.next)
            foreign = True
            continue
        elif act == "backup":
            said = world.back_up()
            assert said == "arrived" or world.copy == before
            if foreign:
                assert said != "arrived"
        assert world.copy[: len(before)] == before
    assert all(one in world.ever for one in world.copy if one < 1000)
