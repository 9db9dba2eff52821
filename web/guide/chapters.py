"""The chapters of the guide, in the order in which a new owner needs them."""

from __future__ import annotations

import msgspec

from web.translation import lazy_text


class Chapter(msgspec.Struct, frozen=True):
    """One page of the guide. ``picture`` describes its picture for those who do not see it;
    ``words`` help a search find it."""

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
        lazy_text("First steps"),
        lazy_text("From an empty box to a folder that your computers can use."),
        lazy_text("The overview of a new box: the first steps, and a bay for each disk."),
        lazy_text("begin start set up"),
    ),
    Chapter(
        "pools",
        lazy_text("Choose how your files are protected"),
        lazy_text("How many disks may fail, and what that costs in space."),
        lazy_text("The list of pools, with their layout, their use and how many more disks may fail."),
        lazy_text("raidz mirror raid layout pool"),
    ),
    Chapter(
        "burn-in",
        lazy_text("Test a disk before you use it"),
        lazy_text("Faults are best found while a disk is empty and can be returned."),
        lazy_text("The report of a tested disk: no fault was found."),
        lazy_text("burn-in badblocks new used drive warranty report"),
    ),
    Chapter(
        "rehearsal",
        lazy_text("Rehearse a rebuild"),
        lazy_text("Find out how long your pool takes to rebuild a disk, before a disk fails."),
        lazy_text("The form for a rehearsal: how full the pool should be, and which disk is rebuilt."),
        lazy_text("resilver replace time test practise"),
    ),
    Chapter(
        "sharing",
        lazy_text("Share a folder"),
        lazy_text("Windows, Macs, phones, Linux and media players."),
        lazy_text("The form that shares a folder: pool, name, users, computers and snapshots."),
        lazy_text("smb nfs afp time machine windows mac network"),
    ),
    Chapter(
        "users",
        lazy_text("Give users access"),
        lazy_text("Who may read and who may change what."),
        lazy_text("The list of users and groups."),
        lazy_text("user group password permission home"),
    ),
    Chapter(
        "snapshots",
        lazy_text("Get back a deleted or changed file"),
        lazy_text("Snapshots keep earlier versions of every file."),
        lazy_text("The page that finds files in all snapshots of a folder."),
        lazy_text("restore undelete previous versions"),
    ),
    Chapter(
        "backups",
        lazy_text("Keep a second copy"),
        lazy_text("Because snapshots are on the same disks."),
        lazy_text("The list of folders with the age of the newest copy of each."),
        lazy_text("backup usb disk copy second"),
    ),
    Chapter(
        "failing-disk",
        lazy_text("When a disk fails"),
        lazy_text("What Larder tells you, and what to do in which order."),
        lazy_text("The overview of a box in which a disk fails: the warning stands at the top."),
        lazy_text("replace broken degraded drive"),
    ),
    Chapter(
        "notifications",
        lazy_text("Get a mail when something is wrong"),
        lazy_text("A failure that nobody hears of is the one that loses data."),
        lazy_text("The form for notifications: provider, address and password."),
        lazy_text("mail smtp webhook alert"),
    ),
    Chapter(
        "moving",
        lazy_text("Move the disks to another box"),
        lazy_text("When the computer dies, the disks still hold everything."),
        lazy_text("The page that lists the pools which can be imported."),
        lazy_text("import export recover new computer"),
    ),
    Chapter(
        "space",
        lazy_text("When a pool fills up"),
        lazy_text("Find what uses the space, and make room."),
        lazy_text("Two pools that are nearly full, with the warning that stands beside each."),
        lazy_text("full space quota delete grow"),
    ),
    Chapter(
        "growth",
        lazy_text("Make a pool larger"),
        lazy_text("Compare the ways to get more room before you buy disks."),
        lazy_text("The ways to get more room in a pool, side by side."),
        lazy_text("more room space expand add disk larger disks raidz expansion capacity"),
    ),
    Chapter(
        "iscsi",
        lazy_text("Give another computer a disk (iSCSI)"),
        lazy_text("One computer uses a volume of this box as a disk of its own."),
        lazy_text("The form that shares a volume over iSCSI: its name, the computers that may use it, and CHAP."),
        lazy_text("volume zvol target initiator iscsiadm chap virtual machine lun block"),
    ),
    Chapter(
        "client",
        lazy_text("Find out what limits the speed"),
        lazy_text("Measure a shared folder from the computer that uses it."),
        lazy_text("The result of a measurement: which part is the limit, and whether a setting helps."),
        lazy_text("slow fast benchmark measure client script network iperf setting tuning"),
    ),
    Chapter(
        "mtu",
        lazy_text("Try larger packets in the network (MTU)"),
        lazy_text("A larger MTU helps only if every device takes it. It is tried for 90 seconds."),
        lazy_text("The form for the MTU of a network port."),
        lazy_text("jumbo frames mtu 9000 network packet port"),
    ),
)
BY_SLUG = {chapter.slug: chapter for chapter in CHAPTERS}
