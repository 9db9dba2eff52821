"""Verdicts by recorded answers of smartctl, and by such with values changed, which say so by ``changed``."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.disks import health, smart
from tests.unit.made import recorded

# Recordings of real drives that are not part of the project; what they show is tested where they are at hand.
ROOT = Path(__file__).parents[2]
SAMPLES = next((found for up in (ROOT.parent, ROOT.parent.parent) if (found := up / "shared/smartctl-samples").exists()), None)  # fmt: skip


def ata(*counts: tuple[int, int], model: str = "WDC WD20EARS-00MVWB0", **changes: Any) -> dict[str, Any]:
    """The recorded answer of the appliance's ATA disk (smartctl 7.4), changed: (attribute, raw value), top-level keys."""
    answer = copy.deepcopy(recorded("smartctl-qemu-ata-7.4.json"))
    table = answer["ata_smart_attributes"]["table"]
    for number, raw in counts:
        table[:] = [row for row in table if row["id"] != number]
        table.append({"id": number, "name": f"Attribute_{number}", "value": 100, "worst": 100, "thresh": 0, "when_failed": "", "raw": {"value": raw, "string": str(raw)}})  # fmt: skip
    answer |= {"model_name": model, "model_family": "", **changes}
    return answer


def nvme(**log: Any) -> dict[str, Any]:
    usual = {"critical_warning": 0, "temperature": 35, "available_spare": 99, "available_spare_threshold": 10, "percentage_used": 3, "media_errors": 0}  # fmt: skip
    return {"smartctl": {"exit_status": 0}, "smart_status": {"passed": not log.get("critical_warning")}, "temperature": {"current": 35}, "nvme_smart_health_information_log": {**usual, **log}}  # fmt: skip


def log_of(*results: tuple[int, int, bool | None]) -> dict[str, Any]:
    """A log of self-tests, the newest first: (kind, status, passed)."""
    table = [{"type": {"value": kind}, "status": {"value": status, "string": "Completed: read failure" if status else "Completed", **({} if passed is None else {"passed": passed})}, "lifetime_hours": 100} for kind, status, passed in results]  # fmt: skip
    return {"standard": {"table": table}}


def verdict(answer: object, accepted: dict[str, int] | None = None, **more: Any) -> health.Verdict:
    return health.judge(smart.read(answer), accepted or {}, **more)


def test_the_appliances_own_disk_is_healthy():
    assert verdict(ata()) == health.Verdict("healthy")


@pytest.mark.parametrize(
    ("answer", "state", "words"),
    [
        (ata((197, 3)), "watch", "3 sectors cannot be read."),
        (ata((197, 1)), "watch", "1 sector cannot be read."),
        (ata((197, 312)), "failing", "312 sectors cannot be read."),
        (ata((5, 8)), "watch", "8 sectors went bad and were replaced by spare ones."),
        (ata((187, 2)), "watch", "2 errors could not be corrected."),
        (ata((198, 60)), "failing", "60 sectors could not be read in a test."),
        (ata(smart_status={"passed": False}), "failing", "It says itself that it is failing."),
        (ata(ata_smart_self_test_log=log_of((2, 0x79, False))), "failing", "Its long self-test failed"),
        (nvme(media_errors=7), "watch", "7 errors of its memory were counted."),
        (nvme(available_spare=5), "failing", "Only 5 % of its spare memory are left."),
        (nvme(percentage_used=104), "watch", "104 %"),
        ({"smart_status": {"passed": True}, "scsi_grown_defect_list": 56}, "watch", "56 sectors went bad since it was made."),
        (ata(temperature={"current": 61}), "watch", "It is 61 °C warm; 55 °C is its limit."),
        (ata(temperature={"current": 61, "op_limit_max": 60}), "watch", "60 °C is its limit."),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_words(answer, state, words):
    found = verdict(answer)
    assert found.state == state, found
    assert words in found.text


@pytest.mark.parametrize(
    "answer",
    [
        ata((188, 4295032853), model="ST8000VN004"),  # 21, 1, 1: published of a drive that works
        ata((188, 4295032853)),  # the same raw value where the maker is not told
        ata((1, 199781349), (7, 3275107577), model="ST8000VN004"),
        ata((188, 94490722326), model="ST18000NM000J-2TV103"),  # 22, 22, 22, as its owner published
        ata((188, 4295032841), model="ST2000DX002-2DV164"),  # 9, 1, 1
        ata((199, 4)),
        ata((197, 2**48 - 1)),  # no count of sectors
        ata(temperature={"current": 0}),
        ata(temperature={"current": -40}),
        ata(temperature={"current": 255}),
        ata(temperature={"current": 58, "op_limit_max": 60}),
        ata(ata_smart_self_test_log=log_of((1, 0x19, None), (2, 0, True))),  # stopped by its owner
        ata(ata_smart_self_test_log=log_of((2, 0, True), (2, 0x79, False))),  # failed, then passed
        ata(ata_smart_self_test_log=log_of((2, 0, True), (1, 0x79, False))),
        nvme(percentage_used=255),
        nvme(available_spare=100, available_spare_threshold=0),
        nvme(temperature_sensors=[0, 65535, -273]),
        ata(smartctl={"exit_status": 4}),
    ],
)
def test_no_false_alarm(answer):
    assert verdict(answer).state == "healthy", verdict(answer)


def test_a_short_test_that_passed_does_not_undo_a_long_one_that_failed():
    log = log_of((1, 0, True), (2, 0x79, False))
    assert verdict(ata(ata_smart_self_test_log=log)).state == "failing"


@pytest.mark.parametrize(
    ("bit", "state"),
    [(1, "failing"), (2, "watch"), (4, "failing"), (8, "failing"), (16, "failing"), (32, "failing")],
)
def test_each_warning_of_an_nvme_disk_is_told(bit, state):
    found = verdict(nvme(critical_warning=bit))
    assert found.state == state
    assert [reason.value for reason in found.reasons] == [bit]


def test_what_its_owner_has_accepted_stays_quiet_until_it_grows():
    assert verdict(ata((5, 8)), {"reallocated": 8}).state == "healthy"
    assert verdict(ata((5, 9)), {"reallocated": 8}).state == "watch"


def test_pending_sectors_that_went_away_leave_nothing():
    assert verdict(ata((197, 0))).state == "healthy"


def test_damaged_transfers_count_from_the_first_look():
    assert verdict(ata((199, 1500)), {"crc": 1495}).state == "healthy"
    assert verdict(ata((199, 1505)), {"crc": 1495}).state == "watch"


def test_a_warm_disk_counts_as_cool_only_well_below_its_limit():
    assert verdict(ata(temperature={"current": 52}), warm=True).state == "watch"
    assert verdict(ata(temperature={"current": 52})).state == "healthy"
    assert verdict(ata(temperature={"current": 49}), warm=True).state == "healthy"


ASLEEP = {"smartctl": {"exit_status": 2, "messages": [{"string": "Device is in STANDBY mode, exit(2)"}]}}


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        (ASLEEP, "asleep"),
        (None, "unknown"),
        ([], "unknown"),
        ("text", "unknown"),
        ({"smartctl": {"exit_status": 2, "messages": [{"string": "/dev/sda: Unknown USB bridge"}]}}, "unknown"),
        ({"smartctl": {"exit_status": 1}}, "unknown"),
        ({"device": {"type": "scsi", "protocol": "SCSI"}, "smart_status": {"passed": True}}, "unknown"),  # a USB case
        ({"device": {"type": "sat", "protocol": "ATA"}, "smart_status": {"passed": True}}, "healthy"),
        ({"device": {"type": "scsi", "protocol": "SCSI"}, "smart_status": {"passed": False}}, "failing"),
        ({"smart_support": {"available": True, "enabled": False}, "smart_status": {"passed": False}}, "unknown"),
        ({"ata_smart_attributes": {"table": [None, {"id": "5"}, {"id": 5, "raw": {"value": "8"}}]}}, "unknown"),
    ],
)
def test_who_does_not_answer_is_unknown_and_neither_failing_nor_healthy(answer, state):
    assert verdict(answer).state == state


def test_a_disk_whose_smart_is_switched_off_says_how_to_switch_it_on():
    assert "smartctl -s on" in verdict(ata(smart_support={"available": True, "enabled": False})).text


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
SECTIONS = [
    "smartctl", "smart_status", "ata_smart_attributes", "temperature", "ata_smart_self_test_log", "ata_smart_data",
    "nvme_smart_health_information_log", "nvme_self_test_log", "scsi_error_counter_log", "power_on_time",
    "nvme_optional_admin_commands", "scsi_self_test_0", "device", "scsi_self_test_1",
]  # fmt: skip


@given(st.dictionaries(st.sampled_from(SECTIONS), JSON))
def test_no_shape_of_answer_is_raised_at(answer):
    assert verdict(answer).state in health.WORST_FIRST


@pytest.mark.parametrize(
    ("name", "state", "count"),
    [
        ("sas-hitachi-7.3", "healthy", None),
        ("scsi-fujitsu-7.4", "healthy", None),
        ("raid-card-toshiba-7.1", "healthy", None),
        ("raid-card-ssd-7.4", "healthy", None),  # exit status 4, and messages about other things
        ("optane-7.3", "healthy", None),  # a spare's limit of 0
        ("nvme-samsung-7.1", "healthy", None),
        ("seagate-7.3", "healthy", None),  # 1, 7 and 195 are packed
        ("hp-7.3", "watch", "reported"),
        ("no-such-device-7.5", "unknown", None),
        ("usb-bridge-unknown-7.x", "unknown", None),
    ],
)
def test_answers_that_owners_of_other_drives_published(name, state, count):
    found = verdict(recorded("smartctl-published.json")["answers"][name])
    assert found.state == state, found
    if count:
        assert [reason.count for reason in found.reasons] == [count]


def figures(answer: object) -> dict[str, tuple[int, str]]:
    return {figure.name: (figure.number, figure.text) for figure in smart.read(answer).figures}


def test_every_other_figure_is_kept_as_smartctl_words_it():
    answers = recorded("smartctl-published.json")["answers"]
    seagate = figures(answers["seagate-7.3"])
    assert seagate["Temperature Celsius (194)"] == (35, "35 (0 19 0 0 0)")
    assert seagate["Power On Hours (9)"] == (100216, "100216")
    assert not any(name.endswith(("(5)", "(187)", "(197)")) for name in seagate)  # these have a graph of their own
    assert figures(answers["nvme-samsung-7.1"])["Sensor 3, °C"] == (38, "38")
    assert figures(answers["optane-7.3"])["Unsafe shutdowns"] == (173, "173")
    assert figures(answers["sas-hitachi-7.3"])["Errors corrected (write)"] == (26762907, "26762907")


def test_figures_of_a_disk_that_talks_nonsense_are_few_and_plain():
    table = [{"id": at, "name": f"a\n<b>{at}", "raw": {"value": 3, "string": "\x1b[31m"}} for at in range(200, 400)]
    found = smart.read(ata(ata_smart_attributes={"table": table})).figures
    assert len(found) == smart.MOST_FIGURES
    assert all(figure.name.isprintable() and figure.text.isprintable() for figure in found)


def scsi(*results: tuple[int, int]) -> dict[str, Any]:
    """The published answer of a SAS disk with self-tests added, the newest first: (kind, result)."""
    tests = {f"scsi_self_test_{at}": {"code": {"value": kind}, "result": {"value": result, "string": "Failed in segment -->" if result else "Completed"}, "power_on_time": {"hours": 22300 - at}} for at, (kind, result) in enumerate(results)}  # fmt: skip
    return recorded("smartctl-published.json")["answers"]["sas-hitachi-7.3"] | tests


def test_a_sas_disk_that_failed_its_own_test_is_failing_until_it_passes():
    assert verdict(scsi((2, 5))).state == "failing"
    assert "long self-test failed" in verdict(scsi((2, 5))).text
    assert verdict(scsi((2, 0), (2, 5))).state == "healthy"
    assert verdict(scsi((1, 1), (2, 0))).state == "healthy"  # stopped by its owner
    assert verdict(scsi((2, 15), (2, 4))).state == "failing"  # one is running, the last one failed


@pytest.mark.skipif(SAMPLES is None, reason="the recordings of other drives are not at hand")
@pytest.mark.parametrize(
    ("name", "state"),
    [
        ("smart-ata", "healthy"),
        ("smart-ata2", "healthy"),
        ("smart-megaraid0", "healthy"),
        ("smart-sat", "healthy"),
        ("smart-nvme", "healthy"),
        ("smart-nvme-failed", "watch"),
        ("smart-scsi", "watch"),
        ("smart-raid", "unknown"),
        ("smart-fail", "unknown"),
    ],
)
def test_recordings_of_real_drives(name, state):
    assert SAMPLES is not None
    found = verdict(json.loads((SAMPLES / f"{name}.json").read_text()))
    assert found.state == state, found


@pytest.mark.parametrize(
    ("answer", "able"),
    [
        (recorded("smartctl-qemu-ata-7.4.json"), True),
        ({"nvme_optional_admin_commands": {"self_test": True}}, True),
        ({"nvme_optional_admin_commands": {"self_test": False}}, False),
        ({"scsi_self_test_0": {"code": {"value": 1}}}, True),
        ({"ata_smart_data": {"capabilities": {"self_tests_supported": "yes"}}}, False),
        (None, False),
    ],
)
def test_only_a_disk_that_says_so_can_test_itself(answer, able):
    assert smart.read(answer).able is able
