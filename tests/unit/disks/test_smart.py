"""Verdicts by recorded answers of smartctl, and by such with values changed, which say so by ``changed``."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from appliance.disks import health, smart, smart_values
from tests.unit.made import recorded

# Recordings of real drives that are not part of the project; what they show is tested where they are at hand.
ROOT = Path(__file__).parents[3]
SAMPLES = next(
    (found for up in (ROOT.parent, ROOT.parent.parent) if (found := up / "shared/smartctl-samples").exists()), None
)
PUBLISHED = recorded("smartctl-published.json")["answers"]


def ata(*counts: tuple[int, int], model: str = "WDC WD20EARS-00MVWB0", **changes: Any) -> dict[str, Any]:
    """The recorded answer of the appliance's ATA disk (smartctl 7.4), changed: (attribute,
    raw value), top-level keys."""
    answer = copy.deepcopy(recorded("smartctl-qemu-ata-7.4.json"))
    table = answer["ata_smart_attributes"]["table"]
    for number, raw in counts:
        table[:] = [row for row in table if row["id"] != number]
        table.append(
            {
                "id": number,
                "name": f"Attribute_{number}",
                "value": 100,
                "worst": 100,
                "thresh": 0,
                "when_failed": "",
                "raw": {"value": raw, "string": str(raw)},
            }
        )
    answer |= {"model_name": model, "model_family": "", **changes}
    return answer


def nvme(**log: Any) -> dict[str, Any]:
    usual = {
        "critical_warning": 0,
        "temperature": 35,
        "available_spare": 99,
        "available_spare_threshold": 10,
        "percentage_used": 3,
        "media_errors": 0,
    }
    return {
        "smartctl": {"exit_status": 0},
        "smart_status": {"passed": not log.get("critical_warning")},
        "temperature": {"current": 35},
        "nvme_smart_health_information_log": {**usual, **log},
    }


def log_of(*results: tuple[int, int, bool | None]) -> dict[str, Any]:
    """A log of self-tests, the newest first: (kind, status, passed)."""
    table = [
        {
            "type": {"value": kind},
            "status": {
                "value": status,
                "string": "Completed: read failure" if status else "Completed",
                **({} if passed is None else {"passed": passed}),
            },
            "lifetime_hours": 100,
        }
        for kind, status, passed in results
    ]
    return {"standard": {"table": table}}


def verdict(answer: object, accepted: dict[str, int] | None = None, **more: Any) -> health.DiskHealth:
    return health.judge_health(smart.read_smart(answer), accepted or {}, **more)


def test_the_appliances_own_disk_is_healthy():
    assert verdict(ata()) == health.DiskHealth("healthy")


@pytest.mark.parametrize(
    ("answer", "state", "words"),
    [
        (ata((197, 3)), "watch", "3 sectors cannot be read."),
        (ata((197, 1)), "watch", "1 sector cannot be read."),
        (ata((197, 312)), "failing", "312 sectors cannot be read."),
        (ata((5, 8)), "watch", "8 sectors went bad and were replaced by spare ones."),
        (ata((187, 2)), "watch", "2 errors could not be corrected."),
        (ata((198, 60)), "failing", "60 sectors could not be read in a test."),
        (ata(smart_status={"passed": False}), "failing", "It reports that it is failing."),
        (ata(ata_smart_self_test_log=log_of((2, 0x79, False))), "failing", "Its long self-test failed"),
        (nvme(media_errors=7), "watch", "7 memory errors were counted."),
        (nvme(available_spare=5), "failing", "Only 5 % of its spare memory is left."),
        (nvme(percentage_used=104), "watch", "104 %"),
        (
            {"smart_status": {"passed": True}, "scsi_grown_defect_list": 56},
            "watch",
            "56 sectors went bad since it was made.",
        ),
        (ata(temperature={"current": 61}), "watch", "It is at 61 °C; its limit is 55 °C."),
        (ata(temperature={"current": 61, "op_limit_max": 60}), "watch", "its limit is 60 °C."),
    ],
)
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
        ({"smartctl": {"exit_status": 2, "messages": [{"string": "Device is in LOW POWER mode, exit(2)"}]}}, "asleep"),
        (
            {"smartctl": {"exit_status": 2, "messages": [{"string": "Device is in STANDBY BY TIMER mode, exit(2)"}]}},
            "asleep",
        ),
        ({"smartctl": {"exit_status": 2, "messages": [{"string": "Sleep.Inc USB: open failed"}]}}, "unknown"),
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
    "smartctl",
    "smart_status",
    "ata_smart_attributes",
    "temperature",
    "ata_smart_self_test_log",
    "ata_smart_data",
    "nvme_smart_health_information_log",
    "nvme_self_test_log",
    "scsi_error_counter_log",
    "power_on_time",
    "nvme_optional_admin_commands",
    "scsi_self_test_0",
    "device",
    "scsi_self_test_1",
]


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
    return {figure.name: (figure.number, figure.text) for figure in smart.read_smart(answer).figures}


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
    found = smart.read_smart(ata(ata_smart_attributes={"table": table})).figures
    assert len(found) == smart.MOST_FIGURES
    assert all(figure.name.isprintable() and figure.text.isprintable() for figure in found)


def scsi(*results: tuple[int, int]) -> dict[str, Any]:
    """The published answer of a SAS disk with self-tests added, the newest first: (kind, result)."""
    tests = {
        f"scsi_self_test_{at}": {
            "code": {"value": kind},
            "result": {"value": result, "string": "Failed in segment -->" if result else "Completed"},
            "power_on_time": {"hours": 22300 - at},
        }
        for at, (kind, result) in enumerate(results)
    }
    return recorded("smartctl-published.json")["answers"]["sas-hitachi-7.3"] | tests


def test_a_sas_disk_that_failed_its_own_test_is_failing_until_it_passes():
    assert verdict(scsi((2, 5))).state == "failing"
    assert "long self-test failed" in verdict(scsi((2, 5))).text
    assert verdict(scsi((2, 0), (2, 5))).state == "healthy"
    assert verdict(scsi((1, 1), (2, 0))).state == "healthy"  # stopped by its owner
    assert verdict(scsi((2, 15), (2, 4))).state == "failing"  # one is running, the last one failed


def scsi_alarm(asc: int, ascq: int) -> dict[str, Any]:
    """The published answer of a SAS disk with an informational exception, as scsiprint.cpp 7.4 prints it."""
    status = {"passed": False, "scsi": {"asc": asc, "ascq": ascq, "ie_string": "a warning"}}
    return PUBLISHED["sas-hitachi-7.3"] | {"smart_status": status}


@pytest.mark.parametrize(
    ("asc", "ascq", "state", "words"),
    [
        (0x0B, 0x01, "watch", "warmer or colder than it should be"),
        (0x0B, 0x0A, "watch", "warmer or colder than it should be"),
        (0x0B, 0x0D, "watch", "warmer or colder than it should be"),
        (0x0B, 0x0E, "watch", "The air around it is too humid or too dry."),
        (0x0B, 0x11, "watch", "The air around it is too humid or too dry."),
        (0x0B, 0x02, "watch", "a fault of its enclosure"),
        (0x5D, 0xFF, "healthy", ""),  # a test of the alarm itself
        (0x0B, 0x03, "failing", "It reports that it is failing."),
        (0x0B, 0x12, "failing", "It reports that it is failing."),
        (0x5D, 0x10, "failing", "It reports that it is failing."),
    ],
)
def test_only_an_alarm_about_a_sas_disk_itself_says_that_it_is_failing(asc, ascq, state, words):
    found = verdict(scsi_alarm(asc, ascq))
    assert found.state == state, found
    assert words in found.text


def test_a_warning_of_a_sas_disk_is_over_once_it_says_that_all_is_well():
    assert after(scsi_alarm(0x0B, 0x01), PUBLISHED["sas-hitachi-7.3"]).state == "healthy"
    assert after(scsi_alarm(0x5D, 0x10), scsi_alarm(0x0B, 0x01)).state == "failing"


def test_a_sas_disk_that_tells_only_of_heat_is_not_unknown():
    answer = {"device": {"protocol": "SCSI"}, "smart_status": scsi_alarm(0x0B, 0x01)["smart_status"]}
    assert verdict(answer).state == "watch"


def output(*lines: str) -> dict[str, Any]:
    """The published answer of a SAS disk with lines of text beside the JSON, as scsiprint.cpp 7.4 prints them."""
    answer = copy.deepcopy(PUBLISHED["sas-hitachi-7.3"])
    answer.setdefault("smartctl", {})["output"] = ["=== START OF READ SMART DATA SECTION ===", *lines, ""]
    return answer


def test_log_of_a_sas_disk_that_was_never_tested_is_told_and_empty():
    found = smart.read_smart(output("No Self-tests have been logged"))
    assert found.logged
    assert not found.tests
    assert not smart.read_smart(output()).logged


@pytest.mark.parametrize("left", ["72", "0", "100"])
def test_rest_of_a_running_test_of_a_sas_disk_is_in_the_text(left):
    found = smart.read_smart(output(f"Self-test execution status:\t\t{left}% of test remaining"))
    assert found.testing
    assert found.test_left == int(left)


@pytest.mark.parametrize(
    "line",
    ["Self-test execution status:\t\t% of test remaining", "Self-test execution status:\t\t720% of test remaining"],
)
def test_nonsense_in_the_text_is_no_running_test(line):
    assert not smart.read_smart(output(line)).testing


def test_a_running_test_of_a_sas_disk_is_known_although_its_rest_is_not():
    running = {
        "scsi_self_test_0": {
            "code": {"value": 2},
            "result": {"value": 15, "string": "Self test in progress ..."},
            "self_test_in_progress": True,
        }
    }
    found = smart.read_smart(PUBLISHED["sas-hitachi-7.3"] | running)
    assert found.testing
    assert found.test_left is None
    assert not found.tests
    assert not smart.read_smart(scsi((2, 0))).testing


def test_switched_off_smart_hides_no_figures_of_a_sas_disk():
    off = {"smart_support": {"available": True, "enabled": False}}
    found = verdict(PUBLISHED["sas-hitachi-7.3"] | off | {"scsi_grown_defect_list": 56})
    assert found.state == "watch"
    assert "56 sectors" in found.text
    assert verdict(scsi((2, 5)) | off).state == "failing"
    assert verdict(PUBLISHED["sas-hitachi-7.3"] | off).text == health.UNSAID
    assert "smartctl -s on" in verdict({"device": {"protocol": "SCSI"}, "smart_status": {"passed": True}} | off).text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Completed: handling damage??", "completed: handling damage"),
        ("Fatal or unknown test error", "it ended with a fatal or unknown error"),
        ("Completed: unknown failed segment", "a part of it failed, but the disk does not say which"),
        ("Completed, segment failed", "a part of it failed, but the disk does not say which"),
        ("Completed: failed segments", "a part of it failed"),
        ("Failed in segment", "a part of it failed"),
        ("Failed in segment -->", "a part of it failed"),
        ("Unknown error, incomplete", "an unknown error ended it early"),
        ("Failed in first segment", "its first part failed"),
        ("Failed in second segment", "its second part failed"),
        ("", "no reason given"),
    ],
)
def test_each_failure_of_a_self_test_is_said_in_plain_words(text, words):
    assert health.failure_text(text) == words


@pytest.mark.parametrize(
    ("status", "passed"),
    [
        (0x00, True),
        (0x10, None),
        (0x20, None),
        (0x30, False),
        (0x39, False),
        (0x40, False),
        (0x79, False),
        (0x80, False),
        (0x90, None),
    ],
)
def test_a_self_test_of_an_ata_disk_is_judged_by_its_status(status, passed):
    """ataPrintSmartSelfTestEntry of smartctl 7.4 prints no "passed" for 1, 2 and 3."""
    told = passed if status >> 4 not in {1, 2, 3} else None
    found = smart.read_smart(ata(ata_smart_self_test_log=log_of((2, status, told))))
    assert [test.passed for test in found.tests] == [passed]


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
        ({"nvme_optional_admin_commands": {"self_test": True}}, True),  # since 7.5
        (
            nvme()
            | {
                "nvme_self_test_log": {
                    "current_self_test_operation": {"value": 0, "string": "No self-test in progress"}
                }
            },
            True,
        ),  # 7.4
        (nvme(), False),
        ({"nvme_optional_admin_commands": {"self_test": False}}, False),
        ({"scsi_self_test_0": {"code": {"value": 1}}}, True),
        (output("No Self-tests have been logged"), True),
        (output("Device does not support Self Test logging"), False),
        ({"smartctl": {"output": "No Self-tests have been logged"}}, False),
        ({"ata_smart_data": {"capabilities": {"self_tests_supported": "yes"}}}, False),
        (None, False),
    ],
)
def test_only_a_disk_that_says_so_can_test_itself(answer, able):
    assert smart.read_smart(answer).able is able


# --- what is not told any more ------------------------------------------------------------------------------
TABLES = (
    "ata_smart_attributes",
    "ata_smart_self_test_log",
    "ata_smart_data",
    "ata_smart_error_log",
    "nvme_smart_health_information_log",
    "nvme_self_test_log",
    "scsi_grown_defect_list",
    "scsi_error_counter_log",
)


def ill(name: str) -> dict[str, Any]:
    """A published answer, changed so that its drive needs attention or is failing."""
    answer = copy.deepcopy(PUBLISHED[name])
    if "nvme_smart_health_information_log" in answer:
        answer["nvme_smart_health_information_log"]["media_errors"] = 7
    elif "scsi_grown_defect_list" in answer:
        answer["scsi_grown_defect_list"] = 56
    else:
        table = [row for row in answer["ata_smart_attributes"]["table"] if row["id"] not in {5, 197}]
        table += [
            {"id": number, "name": f"Attribute_{number}", "when_failed": "", "raw": {"value": raw, "string": str(raw)}}
            for number, raw in ((5, 1975), (197, 80))
        ]
        answer["ata_smart_attributes"]["table"] = table
        answer["ata_smart_self_test_log"] = log_of((2, 0x79, False))
    return answer


def without(answer: dict[str, Any], names: tuple[str, ...] = TABLES, status: int = 4) -> dict[str, Any]:
    left = {name: value for name, value in answer.items() if name not in names}
    return left | {"smartctl": {"exit_status": status}, "smart_status": {"passed": True}}


def after(answer: object, *later: object, accepted: dict[str, int] | None = None) -> health.DiskHealth:
    """The verdict after several answers, each judged with what was known before it."""
    found = verdict(answer)
    known, counted = found.state in {"healthy", "watch", "failing"}, bool(smart.read_smart(answer).counts)
    for at, one in enumerate(later):
        reading = smart.read_smart(one)
        before = health.Before(found.reasons, known, counted, now=f"day {at}")
        found, counted = health.judge_health(reading, accepted or {}, before=before), counted or bool(reading.counts)
    return found


DRIVES = [
    "seagate-7.3",
    "hp-7.3",
    "raid-card-ssd-7.4",
    "nvme-samsung-7.1",
    "optane-7.3",
    "sas-hitachi-7.3",
    "scsi-fujitsu-7.4",
    "raid-card-toshiba-7.1",
]


@pytest.mark.parametrize("status", [0, 4])
@pytest.mark.parametrize("name", DRIVES)
def test_a_drive_that_stops_telling_its_figures_keeps_its_verdict(name, status):
    bad = ill(name)
    first = verdict(bad)
    assert first.state in {"watch", "failing"}
    found = after(bad, *[without(bad, status=status)] * 3)
    assert found.state == first.state
    assert {(one.count, one.value) for one in found.reasons} == {(one.count, one.value) for one in first.reasons}
    assert all(one.since == "day 0" and "not reported this again since day 0" in one.text for one in found.reasons)


@pytest.mark.parametrize("name", DRIVES)
def test_a_drive_whose_figures_are_good_again_is_healthy_also_after_a_silence(name):
    bad, good = ill(name), copy.deepcopy(PUBLISHED[name])
    if "ata_smart_attributes" in good:
        good = copy.deepcopy(bad) | {"ata_smart_self_test_log": log_of((2, 0, True))}
        for row in good["ata_smart_attributes"]["table"]:
            row["raw"] |= {"value": 0, "string": "0"} if row["id"] in {5, 187, 197} else {}
    assert after(bad, without(bad), good).state == "healthy"


@pytest.mark.parametrize("name", DRIVES)
def test_a_healthy_drive_that_stops_telling_its_figures_is_unknown_since_then(name):
    good = without(PUBLISHED[name], (), 0)
    for row in good.get("ata_smart_attributes", {}).get("table", ()):
        row["raw"] |= {"value": 0, "string": "0"} if row["id"] == 187 else {}
    assert verdict(good).state == "healthy"
    found = after(good, without(good, status=0), without(good, status=0))
    assert found.state == "unknown"
    assert "since day 0" in found.text
    assert after(good, without(good), good).state == "healthy"


def fails_by_itself() -> dict[str, Any]:
    return ata(smart_status={"passed": False})


@pytest.mark.parametrize(
    ("bad", "later", "state"),
    [
        (ata((197, 80)), ata(), "failing"),  # the recorded table has no 197
        (ata((197, 80)), ata((197, 2**48 - 1)), "failing"),  # no count of sectors
        (ata((197, 80)), ata((197, 0)), "healthy"),
        (fails_by_itself(), {k: v for k, v in ata().items() if k != "smart_status"}, "failing"),
        (fails_by_itself(), ata(smartctl={"exit_status": 4}), "failing"),  # PASSED for want of anything else
        (fails_by_itself(), ata(), "healthy"),
        (ata(ata_smart_self_test_log=log_of((2, 0x79, False))), ata(ata_smart_self_test_log=log_of()), "failing"),
        (
            ata(ata_smart_self_test_log=log_of((2, 0x79, False))),
            ata(ata_smart_self_test_log=log_of((1, 0, True))),
            "failing",
        ),
        (
            ata(ata_smart_self_test_log=log_of((1, 0x79, False))),
            ata(ata_smart_self_test_log=log_of((2, 0, True))),
            "healthy",
        ),
        (ata(temperature={"current": 61}), ata(temperature={}), "watch"),
        (nvme(critical_warning=4), nvme(critical_warning=None), "failing"),
        (nvme(critical_warning=4), nvme(), "healthy"),
        (nvme(available_spare=5), nvme(available_spare_threshold=None), "failing"),
        (nvme(percentage_used=254), nvme(percentage_used=255), "watch"),  # where its counter ends
        (nvme(media_errors=7), nvme(media_errors=2**64 - 1), "watch"),
    ],
)
def test_a_verdict_gets_better_only_by_evidence(bad, later, state):
    assert verdict(bad).state in {"failing", "watch"}
    found = after(bad, later, later)
    assert found.state == state, found


def test_an_attribute_below_its_limit_is_over_only_when_it_is_told_again():
    row = {"id": 10, "name": "Spin_Retry_Count", "when_failed": "now", "raw": {"value": 1, "string": "1"}}
    bad = ata()
    bad["ata_smart_attributes"]["table"].append(row)
    good = copy.deepcopy(bad)
    good["ata_smart_attributes"]["table"][-1]["when_failed"] = "past"
    assert after(bad, ata()).state == "failing"
    assert after(bad, ata(), good).state == "healthy"


def test_errors_of_a_sas_disk_are_not_gone_because_one_of_its_tables_is():
    def errors(**parts: int | None) -> dict[str, Any]:
        log = {name: {"total_uncorrected_errors": value} for name, value in parts.items()}
        return PUBLISHED["sas-hitachi-7.3"] | {"scsi_error_counter_log": log}

    assert after(errors(read=5, write=0), errors(write=0)).state == "watch"
    assert after(errors(read=5, write=0), errors(read=0, write=0)).state == "healthy"


def test_what_its_owner_accepts_while_it_is_not_told_stays_quiet():
    assert after(ata((5, 8)), ata(), accepted={"reallocated": 8}).state == "healthy"


def test_a_first_answer_of_nothing_but_passed_beside_a_failed_command_is_no_evidence():
    answer = {"device": {"type": "sat", "protocol": "ATA"}, "smart_status": {"passed": True}}
    assert verdict(answer | {"smartctl": {"exit_status": 4}}).state == "unknown"
    assert verdict(answer).text == health.UNCOUNTED
    assert "nothing it counts" not in verdict(answer).text


def test_a_drive_that_does_not_say_that_it_works_is_not_said_to():
    silent = {name: value for name, value in PUBLISHED["sas-hitachi-7.3"].items() if name != "smart_status"}
    assert (verdict(silent).state, verdict(silent).text) == ("healthy", health.UNSAID)


# --- temperatures -------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("heat", "state"),
    [
        ({"current": 59, "drive_trip": 60}, "watch"),
        ({"current": 55, "drive_trip": 60}, "watch"),
        ({"current": 54, "drive_trip": 60}, "healthy"),
        ({"current": 69, "limit_max": 70}, "watch"),
        ({"current": 59, "op_limit_max": 60, "limit_max": 70}, "healthy"),
        ({"current": 60, "op_limit_max": 60, "limit_max": 70}, "watch"),
        ({"current": True, "drive_trip": 60}, "healthy"),
        ({"current": 54, "drive_trip": 0}, "healthy"),
    ],
)
def test_a_drive_near_where_it_switches_itself_off_is_too_warm(heat, state):
    assert verdict(PUBLISHED["sas-hitachi-7.3"] | {"temperature": heat}).state == state


# --- odd answers --------------------------------------------------------------------------------------------
ANY_VALUE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([2**63, 2**64 - 1, -1, 10**60])
    | st.floats()
    | st.text(max_size=5)
    | st.just("\ud800\x00"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
RECORDED = [
    recorded("smartctl-qemu-ata-7.4.json"),
    ill("seagate-7.3"),
    *PUBLISHED.values(),
    nvme(temperature_sensors=[30, 31])
    | {
        "nvme_self_test_log": {
            "current_self_test_operation": {"value": 1},
            "current_self_test_completion_percent": 5,
            "table": [
                {
                    "self_test_code": {"value": 1},
                    "self_test_result": {"value": 0, "string": "Completed"},
                    "power_on_hours": 5,
                }
            ],
        }
    },
    scsi((2, 5), (1, 0)),
]


def places_in(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at, *(place for key, inner in items for place in places_in(inner, (*at, key)))]


ODD_PLACES = [(answer, place) for answer in RECORDED for place in places_in(answer)]


def with_value(answer: Any, place: tuple[Any, ...], value: Any) -> Any:
    if not place:
        return value
    changed = copy.deepcopy(answer)
    inner = changed
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return changed


def numbers_in(value: Any) -> list[int]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [number for inner in value for number in numbers_in(inner)]
    return [value] if isinstance(value, int) else []


def assert_judged_whole(answer: Any) -> None:
    reading = smart.build_reading(answer)  # without the guard of read()
    kept = msgspec.to_builtins(reading)
    json.dumps(kept, ensure_ascii=False).encode()  # as a row of the database keeps it
    assert all(number < 2**63 for number in numbers_in(kept))
    assert all(number < 2**32 for number in reading.counts.values())
    assert health.judge_health(reading, {}, before=health.Before((), True, True, "now")).state in health.WORST_FIRST


@given(place=st.sampled_from(ODD_PLACES), value=ANY_VALUE)
@settings(max_examples=400)
def test_any_value_at_any_place_of_an_answer_is_read_and_judged(place, value):
    answer, at = place
    assert_judged_whole(with_value(answer, at, value))


@pytest.mark.parametrize(
    "value", [None, [], {}, [1], {"a": 1}, True, -1, 2**63, 2**64 - 1, 1.5, "text", "\ud800"], ids=repr
)
def test_each_place_of_every_recorded_answer_bears_an_odd_value(value):
    for answer, place in ODD_PLACES:
        assert_judged_whole(with_value(answer, place, value))


@pytest.mark.parametrize(
    "answer",
    [
        nvme(media_errors=2**64 - 1),
        nvme(media_errors=2**63),
        PUBLISHED["sas-hitachi-7.3"] | {"scsi_grown_defect_list": 2**63},
        PUBLISHED["sas-hitachi-7.3"]
        | {"scsi_error_counter_log": {part: {"total_uncorrected_errors": 2**64 - 1} for part in ("read", "write")}},
    ],
)
def test_a_count_that_cannot_be_one_is_none(answer):
    assert not any(
        smart.read_smart(answer).counts.get(name) for name in ("media_errors", "grown_defects", "uncorrected")
    )
    assert verdict(answer).state == "healthy"


def test_a_fault_of_the_reader_itself_leaves_a_reading(monkeypatch):
    def fail(_answer: object) -> None:
        raise KeyError("x")

    monkeypatch.setattr(smart, "self_tests", fail)
    assert smart.read_smart(ata()) == smart_values.Reading(message=smart.NOT_UNDERSTOOD)
    assert verdict(ata()).text == smart.NOT_UNDERSTOOD
