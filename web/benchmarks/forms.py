"""The form for the settings of a sweep. A preset fills it in; rarely changed fields are under "More settings"."""

from __future__ import annotations

from typing import Any

import msgspec
from django import forms
from django.http import QueryDict
from django.utils.translation import gettext

from appliance.benchmarks import checks
from appliance.benchmarks.case import LEAST_LIMITED, NETWORK, ON_VOLUMES, PER_DISK, WAYS
from appliance.benchmarks.matrix import Sweep
from appliance.benchmarks.presets import BenchmarkPreset, smallest_size
from appliance.benchmarks.run_case import RunBenchmarkCase
from appliance.benchmarks.workloads import KINDS
from appliance.errors import Reason, Refused
from appliance.facts.box import Facts
from appliance.facts.datasets import Dataset
from appliance.formatting import size_of, size_typed
from appliance.layout.geometry import GIB, KIB, MIB
from web.benchmarks.form_fields import PLAIN, multiple_choice, number_field, parse_bool, protocol_name
from web.benchmarks.questions import is_usable, lacking_for
from web.inventory.bays import Bay
from web.jobs.refusals import add_reasons
from web.translation import lazy_text, text_of

NO_TOKEN = "0" * 12  # token of a case that is only checked
SHARE_OF_DISK = 0.3  # share of the smallest disk; the most data that is proposed
USUAL_SIZE = 8 * GIB
LAYOUTS = [(name, name) for name in ("stripe", "mirror", "raidz1", "raidz2", "raidz3")]
RECORDS = [
    (size * KIB, f"{size} KiB" if size < 1024 else f"{size // 1024} MiB") for size in (16, 64, 128, 512, 1024, 4096)
]
VOLUMES = [(size * KIB, f"{size} KiB") for size in (4, 8, 16, 32, 64, 128)]
WHERE = {"disks": "scratch", "any disks": "disk", "pool": "dataset", "network": "network"}
# Fields above "More settings", and fields that only some sweeps have.
MAIN = (
    "title",
    "peer",
    "pool",
    "disks",
    "log",
    "cache",
    "layouts",
    "protocols",
    "workloads",
    "fills",
    "sample",
    "compressible",
    "size",
    "repeats",
)
OF_SCRATCH = ("layouts", "counts", "ashifts", "partitions", "log", "cache", "fills")
NOT_OF_DISKS = (
    "recordsizes",
    "compressions",
    "dedups",
    "syncs",
    "writers",
    "compressible",
    "zeros",
    "limited",
    "aside",
    "warmups",
)


class SweepForm(forms.Form):
    """One form for all presets; fields that a preset does not need are removed."""

    title = forms.CharField(
        label=lazy_text("Name"),
        max_length=120,
        help_text=lazy_text("So that you find it again, for example with the month."),
    )
    peer = forms.CharField(
        label=lazy_text("Other computer"),
        max_length=253,
        help_text=lazy_text("Its name or address. Run iperf3 -s there; it is free for Windows, macOS and Linux."),
    )
    pool = forms.ChoiceField(label=lazy_text("Which pool?"))
    disks = multiple_choice(lazy_text("Which disks?"), [])
    log = forms.ChoiceField(label=lazy_text("Log device to try"), required=False)
    cache = forms.ChoiceField(label=lazy_text("Cache device to try"), required=False)
    layouts = multiple_choice(
        lazy_text("Layouts"), LAYOUTS, help_text=lazy_text("Those that need more disks than you chose are left out.")
    )
    counts = multiple_choice(
        lazy_text("With how many of the disks"),
        [],
        int,
        required=False,
        help_text=lazy_text(
            "Each number is measured for itself, with the first of the disks above; none chosen means all of them."
        ),
    )
    workloads = multiple_choice(lazy_text("What is measured"), [])
    fills = multiple_choice(lazy_text("Filled to"), [(25, "25 %"), (50, "50 %")], int)
    sample = forms.ChoiceField(
        label=lazy_text("Data to measure with"),
        required=False,
        help_text=lazy_text(
            "A folder with files of the kind that you keep: parts of them are copied to the scratch pool, "
            "without their names. Encrypted folders are not offered, since the copy is not encrypted. The "
            "figure below then does not count."
        ),
    )
    compressible = number_field(
        lazy_text("How much smaller compression makes your data, in per cent"),
        0,
        95,
        lazy_text("0 for photos and films, 30 to 60 for documents and programs."),
    )
    size = forms.CharField(label=lazy_text("Data per run"), max_length=20)
    repeats = number_field(
        lazy_text("Runs of each case"), 1, 9, lazy_text("The middle one counts. Three tell a difference from chance.")
    )
    seconds = number_field(lazy_text("Seconds of a run of small reads or writes"), 1, 3600)
    warmups = number_field(lazy_text("Runs before those that count"), 0, 9)
    writers = number_field(lazy_text("Writers at the same time"), 1, 64)
    ashifts = multiple_choice(
        lazy_text("Sector size"),
        [
            (9, lazy_text("512 bytes (ashift 9)")),
            (12, lazy_text("4 KiB (ashift 12)")),
            (13, lazy_text("8 KiB (ashift 13)")),
        ],
        int,
    )
    partitions = multiple_choice(
        lazy_text("Of each disk"),
        [("whole", lazy_text("the whole disk")), ("part", lazy_text("a partition of two thirds of the smallest"))],
    )
    recordsizes = multiple_choice(lazy_text("Record size"), RECORDS, int)
    compressions = multiple_choice(lazy_text("Compression"), [("off", "off"), ("lz4", "lz4"), ("zstd", "zstd")])
    dedups = multiple_choice(lazy_text("Dedup"), [(False, "off"), (True, "on")], parse_bool)
    volblocksizes = multiple_choice(lazy_text("Block size of the volume"), VOLUMES, int)
    protocols = multiple_choice(
        lazy_text("Way in"), [(name or PLAIN, words) for name, words in WAYS.items()], protocol_name
    )
    syncs = multiple_choice(
        lazy_text("Writes that are waited for (sync)"),
        [
            ("standard", "standard"),
            ("always", "always"),
            ("disabled", lazy_text("disabled: faster by not doing what was promised")),
        ],
    )
    zeros = forms.BooleanField(
        label=lazy_text("Write zeros with dd"),
        required=False,
        help_text=lazy_text("As in old tables. They mean nothing where compression is on, and such cases are marked."),
    )
    limited = forms.BooleanField(
        label=lazy_text("Limit memory while it is measured"),
        required=False,
        help_text=lazy_text(
            "For less data than twice the memory: ZFS may then keep half as much as one run writes, at most "
            "512 MiB. It is the memory of the whole box, so everything else is slower meanwhile."
        ),
    )
    aside = forms.BooleanField(
        label=lazy_text("Bypass the memory cache"),
        required=False,
        help_text=lazy_text(
            "Leaves the memory of other pools alone. But then nothing is read ahead, so large files read "
            "slower than in daily use."
        ),
    )
    gentle = forms.BooleanField(
        label=lazy_text("Low priority"),
        required=False,
        help_text=lazy_text("For a box that is in use. The figures then depend on what else happens."),
    )

    def __init__(
        self, data: QueryDict | None, *, preset: BenchmarkPreset, bays: list[Bay], facts: Facts, memory: int
    ) -> None:
        self.preset, self.bays, self.facts, self.memory = preset, bays, facts, memory
        self.where = WHERE[preset.needs]
        super().__init__(data, initial=self.initial_values())
        for field in self.unused_fields():
            del self.fields[field]
        self.set_choices("workloads", [(name, kind.title) for name, kind in KINDS.items() if self.fits_preset(name)])
        self.set_choices("pool", [(str(pool.guid), pool.name) for pool in facts.pools])
        paths = [
            (
                bay.disk.path,
                gettext("{label}: {model} (serial {serial})").format(
                    label=bay.label.capitalize(), model=bay.disk.model, serial=bay.disk.serial
                ),
            )
            for bay in self.usable
        ]
        self.set_choices(
            "sample",
            [
                ("", gettext("generated, as stated below")),
                *((str(one.guid), gettext("files of {name}").format(name=one.name)) for one in self.samples),
            ],
        )
        self.set_choices("disks", paths)
        self.set_choices(
            "counts",
            [
                (count, gettext("{count} disk{part}").format(count=count, part="s" if count > 1 else ""))
                for count in range(1, len(paths) + 1)
            ],
        )
        self.set_choices("log", [("", "none"), *paths])
        self.set_choices("cache", [("", "none"), *paths])

    def set_choices(self, field: str, choices: list[tuple[Any, str]]) -> None:
        if field in self.fields:
            self.fields[field].choices = choices  # type: ignore[attr-defined]  # all of these have choices

    def unused_fields(self) -> set[str]:
        away: set[str] = set()
        if self.where != "scratch":
            away |= set(OF_SCRATCH)
        if self.where in {"disk", "network"}:
            away |= set(NOT_OF_DISKS)
        if self.where == "network":
            away |= {"disks", "pool", "size", "gentle"}
            away.discard("writers")
        else:
            away.add("peer")
        if self.preset.name == "resilver":
            away |= {"workloads", "size", "seconds", "warmups", "limited", "aside", "zeros", "writers"}
        else:
            away.add("fills")
        if self.preset.name == "volumes":
            away |= {"recordsizes", "zeros", "warmups", "cache"}
        else:
            away.add("volblocksizes")
        if self.preset.name != "compression":
            away.add("sample")
        if self.preset.name != "protocols":
            away.add("protocols")
        return away | ({"disks"} if self.where == "dataset" else {"pool"})

    def fits_preset(self, workload: str) -> bool:
        if self.preset.name == "volumes":
            return workload in ON_VOLUMES
        if self.where == "network" or workload in NETWORK:
            return self.where == "network" and workload in NETWORK
        if workload in PER_DISK or self.where == "disk":
            return workload in PER_DISK and self.where == "disk"
        return (workload == "resilver") == (self.preset.name == "resilver")

    @property
    def usable(self) -> list[Bay]:
        """Disks that can be chosen: empty ones, or all of them if nothing is written."""
        return [bay for bay in self.bays if is_usable(self.preset, bay.disk)]

    @property
    def lacking(self) -> str:
        """Why the preset cannot be run on this box now."""
        return lacking_for(self.preset, [bay.disk for bay in self.bays], pools=bool(self.facts.pools))

    @property
    def samples(self) -> list[Dataset]:
        """Folders that can be a sample."""
        return [one for one in self.facts.datasets if can_be_sample(one)]

    @property
    def unusable(self) -> list[Bay]:
        return [bay for bay in self.bays if bay not in self.usable]

    @property
    def main(self) -> list[forms.BoundField]:
        return [self[name] for name in self.asked_first if name in self.fields]

    @property
    def asked_first(self) -> tuple[str, ...]:
        """The fields above "More settings". Presets about layouts have the number of disks among them."""
        at = MAIN.index("layouts") + 1
        return (*MAIN[:at], "counts", *MAIN[at:]) if self.preset.name in {"layouts", "resilver"} else MAIN

    @property
    def more(self) -> list[forms.BoundField]:
        return [self[name] for name in self.fields if name not in self.asked_first]

    def initial_values(self) -> dict[str, object]:
        """The initial values of the form."""
        free = [bay.disk for bay in self.usable if bay.disk.bus != "usb" or self.where == "disk"]
        free = [disk for disk in free if not any(use.kind == "system" for use in disk.uses)]  # only when ticked
        extra = ""
        if self.preset.extra and len(free) > 1:
            extra = next((disk.path for disk in free if not disk.rotational), free[-1].path)
        chosen = [disk for disk in free if disk.path != extra]
        size, little = self.proposed_size(
            smallest_size(chosen) or min((pool.free for pool in self.facts.pools), default=0)
        )
        limited = little and size >= LEAST_LIMITED
        aside = little and not limited and self.preset.extra != "cache"  # a cache device is filled from the ARC
        filled = self.preset.fill(smallest_size(chosen), max(len(chosen), 1))
        parts = ["whole", "part"] if filled.pop("partitions", None) else ["whole"]
        found: dict[str, object] = {
            "title": text_of(self.preset.title),
            "disks": [disk.path for disk in chosen],
            "layouts": ["stripe"],
            "ashifts": [12],
            "recordsizes": [128 * KIB],
            "compressions": ["off"],
            "dedups": [False],
            "syncs": ["standard"],
            "repeats": 3,
            "warmups": 0,
            "size": size_typed(size),
            "seconds": 30,
            "writers": 1,
            "compressible": 0,
            "partitions": parts,
            "limited": limited,
            "aside": aside,
            "fills": [25],
        }
        if self.preset.extra:
            found[self.preset.extra] = extra
        if "protocols" in filled:
            filled["protocols"] = [name or PLAIN for name in WAYS]
        return found | filled

    def proposed_size(self, room: int) -> tuple[int, bool]:
        """The proposed size, twice the ARC, and whether the disks are too small for that, so that it is less."""
        wanted = max(-(-2 * self.memory // GIB) * GIB, GIB) if self.memory else USUAL_SIZE
        if self.where == "disk":
            return GIB, False
        if not room or wanted <= room * SHARE_OF_DISK:
            return wanted, False
        return max(int(room * SHARE_OF_DISK) // MIB, 64) * MIB, True

    def clean_size(self) -> int:
        try:
            size = size_of(self.cleaned_data["size"])
        except ValueError as error:
            raise forms.ValidationError(
                gettext("Enter a size with its unit, for example 8 GiB."), code="size-without-unit"
            ) from error
        if size < MIB:
            raise forms.ValidationError(gettext("The size must be at least 1 MiB."), code="size-too-small")
        return size // MIB * MIB

    def clean(self) -> dict[str, Any]:
        values = dict(super().clean() or {})
        if not self.errors:
            try:
                self.sweep = self.sweep_of(values)
                add_reasons(self, dict.fromkeys(check_sweep(self.sweep, self.facts)))
            except Refused as refusal:
                add_reasons(self, refusal.reasons)
        return values

    def sweep_of(self, values: dict[str, Any]) -> Sweep:
        """The sweep of these values. Raises Refused."""
        found = {
            key: value
            for key, value in values.items()
            if key not in {"title", "pool", "log", "cache", "partitions", "sample"}
        }
        found["where"] = self.where
        chosen = [bay.disk for bay in self.bays if bay.disk.path in values.get("disks", ())]
        if self.where == "dataset":
            pool = next(pool for pool in self.facts.pools if str(pool.guid) == values["pool"])
            found |= {"pool": pool.name, "guid": pool.guid}
        if self.where == "scratch":
            part = int(smallest_size(chosen) * 2 / 3) // MIB * MIB
            found["partitions"] = [part if kind == "part" else 0 for kind in values["partitions"]]
            found["logs"] = ["", values["log"]] if values["log"] else [""]
            found["caches"] = ["", values["cache"]] if values.get("cache") else [""]
        if values.get("sample"):
            chosen_folder = next(one for one in self.samples if str(one.guid) == values["sample"])
            found |= {"sample": chosen_folder.name, "sample_guid": chosen_folder.guid, "compressible": 0}
        if self.preset.name == "resilver":
            found["workloads"] = ["resilver"]
        return msgspec.convert(found, Sweep)


def can_be_sample(dataset: Dataset) -> bool:
    """Whether a folder can be a sample, by the agent's own check."""
    return not any(checks.check_sample(dataset, dataset.name, dataset.guid))


def check_sweep(sweep: Sweep, facts: Facts) -> list[Reason]:
    """All reasons against cases of the sweep, by the agent's own check."""
    return [
        reason for case in sweep.build_cases() for reason in RunBenchmarkCase(token=NO_TOKEN, case=case).check(facts)
    ]
