"""The chapters of the guide, in the order in which a new owner needs them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Chapter:
    """One page of the guide. ``picture`` describes its picture for those who do not see it; ``words`` help a search find it."""

    slug: str
    title: str
    summary: str
    picture: str
    words: str = ""

    @property
    def template(self) -> str:
        return f"guide/{self.slug}.html"

    @property
    def image(self) -> str:
        return f"guide/{self.slug}.webp"


CHAPTERS = (
    Chapter(
        "first-steps",
        "First steps",
        "From an empty box to a folder that your computers can use.",
        "The overview of a new box: the first steps, and a bay for each disk.",
        "begin start set up",
    ),
    Chapter(
        "pools",
        "Choose how your files are protected",
        "How many disks may fail, and what that costs in space.",
        "The list of pools, with their layout, their use and how many more disks may fail.",
        "raidz mirror raid layout pool",
    ),
    Chapter(
        "sharing",
        "Share a folder",
        "Windows, Macs, phones, Linux and media players.",
        "The form that shares a folder: pool, name, users, computers and snapshots.",
        "smb nfs afp time machine windows mac network",
    ),
    Chapter(
        "users",
        "Give people access",
        "Who may read and who may change what.",
        "The list of users and groups.",
        "user group password permission home",
    ),
    Chapter(
        "snapshots",
        "Get back a deleted or changed file",
        "Snapshots keep earlier versions of every file.",
        "The page that finds files in all snapshots of a folder.",
        "restore undelete previous versions",
    ),
    Chapter(
        "backups",
        "Keep a second copy",
        "Because snapshots are on the same disks.",
        "The list of folders with the age of the newest copy of each.",
        "backup usb disk copy second",
    ),
    Chapter(
        "failing-disk",
        "When a disk fails",
        "What Larder tells you, and what to do in which order.",
        "The overview of a box in which a disk fails: the warning stands at the top.",
        "replace broken degraded drive",
    ),
    Chapter(
        "notifications",
        "Get a mail when something is wrong",
        "A failure that nobody hears of is the one that loses data.",
        "The form for notifications: provider, address and password.",
        "mail smtp webhook alert",
    ),
    Chapter(
        "moving",
        "Move the disks to another box",
        "When the computer dies, the disks still hold everything.",
        "The page that lists the pools which can be imported.",
        "import export recover new computer",
    ),
    Chapter(
        "space",
        "When a pool fills up",
        "Find what uses the space, and make room.",
        "Two pools that are nearly full, with the warning that stands beside each.",
        "full space quota delete grow",
    ),
)
BY_SLUG = {chapter.slug: chapter for chapter in CHAPTERS}
