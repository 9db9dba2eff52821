"""Numbers and things as people say them. The same words on pages, in plans and in mails."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import date, datetime
from functools import reduce
from typing import NamedTuple

from appliance.facts.box import Disk
from appliance.message import CONTINUED, OPENING, REST, Argument, Message, join_messages


class Units(NamedTuple):
    """Names of units, each ``base`` times the one before."""

    base: int
    names: tuple[str, ...]


DECIMAL = Units(1000, ("B", "kB", "MB", "GB", "TB", "PB"))
BINARY = Units(1024, ("B", "KiB", "MiB", "GiB", "TiB", "PiB"))

chosen_units: ContextVar[Callable[[], Units]] = ContextVar("chosen_units", default=lambda: DECIMAL)


@contextmanager
def space_in(choose: Callable[[], Units]) -> Iterator[None]:
    """Meanwhile ``size_text`` uses the units that ``choose`` returns. It is called only where a size is shown."""
    token = chosen_units.set(choose)
    try:
        yield
    finally:
        chosen_units.reset(token)


def number_text(number: str) -> str:
    """A number as English writes it (``4,000.5``), as a message: other languages write other marks."""
    whole, point, part = number.partition(".")
    grouped = reduce(lambda more, less: Message("{more},{less}", more=more, less=less), whole.split(","))
    return Message("{whole}.{part}", whole=grouped, part=part) if point else grouped


def with_unit(number: str, unit: str) -> str:
    """A number and its unit; a message where the number is one."""
    said = number_text(number)
    return Message("{number} {unit}", number=said, unit=unit) if isinstance(said, Message) else f"{number} {unit}"


def text_in(units: Units, size: int) -> str:
    """Bytes in the largest fitting unit with three figures: ``1.82 TB``."""
    value, unit = float(size), units.names[0]
    for unit in units.names:
        if abs(value) < units.base - 0.5 or unit == units.names[-1]:
            break
        value /= units.base
    if unit == "B":
        return f"{size} B"
    return with_unit(f"{value:.3g}" if abs(value) < 999.5 else f"{value:.0f}", unit)


def size_text(size: int) -> str:
    """Space for files: ``1.82 TB``, or ``1.66 TiB`` on a page for somebody who chose that."""
    return text_in(chosen_units.get()(), size)


def binary_text(size: int) -> str:
    """Memory, and the sizes of blocks and records, which are powers of two: ``16 KiB``."""
    return text_in(BINARY, size)


def rate_text(rate: int) -> str:
    """Bytes a second, as makers of disks and networks count: ``118 MB/s``."""
    size = text_in(DECIMAL, rate)
    return Message("{size}/s", size=size) if isinstance(size, Message) else f"{size}/s"


def disk_size(size: int) -> str:
    """Bytes as printed on a disk's label, in powers of ten: ``2 TB``."""
    for unit, factor in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6)):
        if size >= factor:
            value = size / factor
            whole = abs(value - round(value)) < 0.05 or value >= 100
            return with_unit(f"{value:.0f}" if whole else f"{value:.1f}", unit)
    return f"{size} B"


def size_typed(size: int) -> str:
    """Bytes as a person would type them, exactly: ``500 GB``, ``8 GiB``, or the plain number where no unit fits."""
    found = [str(size)]
    for base, names in (DECIMAL, BINARY):
        power = next((power for power in range(len(names) - 1, 0, -1) if size % base**power == 0), 0) if size else 0
        if power:
            found.append(f"{size // base**power} {names[power]}")
    return min(found[1:] or found, key=len)


def size_of(text: str) -> int:
    """Whole bytes of what a person typed: ``500 GiB``, ``1.5T``, ``20 GB`` (powers of ten). Raises ValueError."""
    found = re.fullmatch(r"([0-9]{1,20})(?:[.,]([0-9]{1,6}))?\s*(?:([KMGTP])(I?B?)|B?)", text.strip().upper(), re.ASCII)
    if not found:
        raise ValueError(text)
    whole, part, unit, rest = found[1], found[2] or "", found[3], found[4]
    factor = (1000 if rest == "B" else 1024) ** ("KMGTP".index(unit) + 1) if unit else 1
    return int(whole) * factor + (int(part) * factor // 10 ** len(part) if part else 0)


def disk_label(disk: Disk) -> str:
    """A disk as its owner can find it: model and serial number."""
    model = disk.model or Message("A disk")
    return (
        Message("{model} (serial {serial})", model=model, serial=disk.serial)
        if disk.serial
        else f"{model} ({disk.name})"
    )


def model_and_serial(link: str) -> tuple[str, str]:
    """What a by-id name tells of its disk: ``ata-WDC_WD20EARS_WD-1`` is ``WDC WD20EARS`` and ``WD-1``; else nothing."""
    kind, dash, rest = link.partition("-")
    if kind == "scsi":
        rest = rest.removeprefix("0")  # udev says by it that the serial number is of the vendor's own making
    model, _, serial = rest.rpartition("_")
    known = dash and kind in {"ata", "nvme", "scsi", "usb", "virtio"} and model
    return (model.replace("_", " "), serial) if known else ("", "")


def link_label(link: str) -> str:
    """``WDC WD20EARS (serial WD-1)`` from a by-id name, which is the answer itself where it tells nothing."""
    model, serial = model_and_serial(link)
    return Message("{model} (serial {serial})", model=model, serial=serial) if model else link


def duration_text(seconds: int) -> str:
    """Seconds as a person says them: ``3 h 10 min``."""
    if seconds < 90:
        return Message("{count} s", count=seconds)
    hours, minutes = divmod(round(seconds / 60), 60)
    if hours >= 48:
        days, hours = divmod(hours, 24)
        return Message("{days} days {hours} h", days=days, hours=hours) if hours else count_days(days)
    if not hours:
        return Message("{minutes} min", minutes=minutes)
    return (
        Message("{hours} h {minutes} min", hours=hours, minutes=minutes)
        if minutes
        else Message("{hours} h", hours=hours)
    )


def count_days(days: int) -> str:
    return Message("1 day") if days == 1 else Message("{days} days", days=days)


def count_below(dataset: str, folders: int, volumes: int = 0) -> str:
    """``tank/photos and 3 folders below it``, with volumes where there are any; its name
    alone where nothing is below."""
    if folders and volumes:
        content = count_content(folders, volumes)
        return Message("{dataset} and {content} below it", dataset=dataset, content=content)
    if volumes:
        if volumes == 1:
            return Message("{dataset} and the volume below it", dataset=dataset)
        return Message("{dataset} and {number} volumes below it", dataset=dataset, number=volumes)
    if folders < 1:
        return dataset
    if folders == 1:
        return Message("{dataset} and the folder below it", dataset=dataset)
    return Message("{dataset} and {number} folders below it", dataset=dataset, number=folders)


def more_folders(count: int) -> str:
    """The end of a list of folders that is too long."""
    return Message("1 more folder") if count == 1 else Message("{number} more folders", number=count)


def more_volumes(count: int) -> str:
    """The same of volumes."""
    return Message("1 more volume") if count == 1 else Message("{number} more volumes", number=count)


def count_content(folders: int, volumes: int) -> str:
    """``3 folders and 1 volume``; a kind of which there is none is left out."""
    counted = []
    if folders:
        counted.append(Message("1 folder") if folders == 1 else Message("{number} folders", number=folders))
    if volumes:
        counted.append(Message("1 volume") if volumes == 1 else Message("{number} volumes", number=volumes))
    return list_with_and(counted)


def day_text(day: date) -> str:
    """``5 November 2026``. Django's own catalogues have the months."""
    return Message("{day} {month} {year}", day=day.day, month=Message(f"{day:%B}"), year=f"{day:%Y}")


def moment_text(at: datetime) -> str:
    """``5 November 2026, 14:30``, in the zone that it has."""
    return Message("{day}, {time}", day=day_text(at), time=f"{at:%H:%M}")


def about_days(days: int) -> str:
    """A forecast, no more exact than it is: ``5 days``, ``40 days``, ``7 months``, ``3 years``."""
    if days < 60:
        return count_days(days)
    months = round(days / 30.44)
    return (
        Message("{months} months", months=months)
        if months < 24
        else Message("{years} years", years=round(days / 365.25))
    )


def round_time_left(seconds: int) -> int:
    """A time left as exact as it can be meant: whole minutes, then 5 and 30 minutes, then hours; never too short."""
    for below, step in ((3600, 60), (6 * 3600, 300), (48 * 3600, 1800)):
        if seconds < below:
            return -(-seconds // step) * step
    return -(-seconds // 3600) * 3600


def time_left(seconds: int) -> str:
    """``about 3 h 10 min left``, as exact as it can be meant."""
    if seconds < 60:
        return Message("less than a minute left")
    return Message("about {duration} left", duration=duration_text(round_time_left(seconds)))


def names_text(names: Sequence[str], most: int, separator: str = ", ") -> str:
    """Names in a sentence: the first ``most`` of them, and how many more there are."""
    return and_more(names[:most], len(names) - most, separator)


def and_more(names: Sequence[str], more: int, separator: str = ", ") -> str:
    """Names of which only these were kept, and how many more there were: of folders where none was kept."""
    listed = join_messages(names, separator)
    if more < 1:
        return listed
    return Message("{names} and {count} more", names=listed, count=more) if listed else more_folders(more)


def list_with_and(names: Sequence[str]) -> str:
    """At least one name: ``a``, ``a and b``, ``a and b and c``."""
    return reduce(lambda one, other: Message("{one} and {other}", one=one, other=other), names)


def capitalize_opening(text: str) -> str:
    """A text that begins a sentence: ``bay 3 (WDC …)`` is ``Bay 3 (WDC …)``; names within stay as they are."""
    return Message(OPENING, text=text) if isinstance(text, Message) else text[:1].upper() + text[1:]


def continue_sentence(text: str) -> str:
    """A sentence with a small first letter, to end another one."""
    return Message(CONTINUED, text=text) if isinstance(text, Message) else text[:1].lower() + text[1:]


def rest_of_sentence(text: str) -> str:
    """A sentence about a thing, without its full stop, to go on after the thing's name: ``is 62 °C warm``."""
    return Message(REST, text=text) if isinstance(text, Message) else f"{Argument(text):rest}"


def printable_text(text: str) -> str:
    """A hostile name with question marks in place of what cannot be displayed."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)
