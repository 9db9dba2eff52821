"""Build the appliance image in two cached layers, without starting it.

The *base* layer is Debian 13 with every package of ``deploy/packages.txt`` and
``deploy/image/packages.txt``; it takes minutes, mostly to compile ZFS. The *system* layer is the base with
this checkout installed by ``deploy/install``, which ``make install`` runs on a real box too.
Each layer is cached by a digest of its inputs, so a change in the code never compiles ZFS again.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
CACHE = Path(
    os.environ.get("LARDER_CACHE", "/var/cache/larder" if os.geteuid() == 0 else "~/.cache/larder")
).expanduser()
SUITE = "trixie"
PACKAGE_LISTS = ("deploy/packages.txt", "deploy/image/packages.txt")
# What deploy/install copies or reads; a change here makes a new system layer.
SHIPPED = (
    "appliance",
    "web",
    "workers",
    "templates",
    "deploy/catalogues.py",
    "deploy/compiled_code.py",
    "deploy/install",
    "deploy/packages.txt",
    "deploy/events",
    "deploy/ifupdown",
    "deploy/nginx",
    "deploy/redis",
    "deploy/samba",
    "deploy/ssh",
    "deploy/systemd",
    "manage.py",
    "requirements.lock",
)
KEPT_LAYERS = 2


def say(text: str) -> None:
    """Print a line with the time on standard error."""
    print(f"{time.strftime('%H:%M:%S')}  {text}", file=sys.stderr, flush=True)


def digest_of(paths: Iterable[str], *, extra: str = "") -> str:
    """Twelve hexadecimal digits over the names and contents of files below the checkout."""
    sums = hashlib.sha256(extra.encode())
    for top in paths:
        root = CHECKOUT / top
        files = (
            [root]
            if root.is_file()
            else sorted(p for p in root.rglob("*") if p.is_file() and "__pycache__" not in p.parts)
        )
        for file in files:
            sums.update(str(file.relative_to(CHECKOUT)).encode() + b"\0" + file.read_bytes() + b"\0")
    return sums.hexdigest()[:12]


def read_packages() -> list[str]:
    """Every package of the lists, without comments."""
    lines = [line.strip() for name in PACKAGE_LISTS for line in (CHECKOUT / name).read_text().splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


@contextmanager
def lock_layer(name: str) -> Iterator[None]:
    """Let only one process build a layer at a time; the kernel releases the lock when it ends."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{name}.lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def run(*argv: str, log: Path, env: dict[str, str] | None = None) -> None:
    """Run a build command with its output in ``log``; show the end of the log if it fails."""
    with log.open("ab") as out:
        code = subprocess.run(argv, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=env).returncode
    if code:
        tail = log.read_text(errors="replace").splitlines()[-40:]
        raise SystemExit("\n".join([*tail, f"larder: {argv[0]} ended with status {code}; the whole log is {log}"]))


def forget_old(kind: str, keep: Path) -> None:
    """Delete old layers, except the newest of a kind and those that a machine uses."""
    used = {json.loads(file.read_text())["layer"] for file in CACHE.glob("*/*/machine.json")}
    layers = sorted((p for p in CACHE.glob(f"{kind}-*") if p.is_dir()), key=lambda p: p.stat().st_mtime, reverse=True)
    for old in [p for p in layers if p != keep and str(p) not in used][KEPT_LAYERS - 1 :]:
        shutil.rmtree(old, ignore_errors=True)


HOOK_TRIM = """
set -e
# zfs.ko stands; what compiled it is not needed to run it.
rm -rf "$1"/usr/src/linux-headers-* "$1"/usr/src/linux-kbuild-* "$1"/var/lib/dkms/zfs/*/build "$1"/var/cache/apt/* "$1"/var/lib/apt/lists/*
rm -rf "$1"/usr/share/doc/* "$1"/usr/share/man/* "$1"/usr/share/locale/* "$1"/usr/lib/linux-kbuild-*
find "$1"/usr/libexec/gcc "$1"/usr/lib/gcc -type f -size +1M -delete
rm -f "$1"/etc/ssh/ssh_host_* "$1"/etc/machine-id && : > "$1"/etc/machine-id
ls "$1"/lib/modules/*/updates/dkms/zfs.ko* >/dev/null
"""


def build_base_layer() -> Path:
    """Return the base layer, a folder with ``rootfs``; build it unless it is cached."""
    layer = CACHE / f"base-{digest_of(PACKAGE_LISTS, extra=HOOK_TRIM)}"
    if (layer / "done").exists():
        return layer
    with lock_layer("base"):
        if (layer / "done").exists():
            return layer
        shutil.rmtree(layer, ignore_errors=True)
        layer.mkdir(parents=True)
        say("Building the base layer: Debian 13 and its ZFS module. This happens once and takes about six minutes.")
        hook = layer / "trim"
        hook.write_text("#!/bin/sh\n" + HOOK_TRIM)
        hook.chmod(0o755)
        run(
            "mmdebstrap",
            "--variant=minbase",
            "--components=main,contrib",
            f"--include={','.join(read_packages())}",
            '--aptopt=Apt::Install-Recommends "false"',
            "--dpkgopt=force-unsafe-io",
            f"--customize-hook={hook}",
            SUITE,
            str(layer / "rootfs"),
            log=layer / "log",
        )
        (layer / "done").touch()
        forget_old("base", layer)
        return layer


def make_pip() -> str:
    """Path of a pip in a virtual environment, because Debian's Python may have none."""
    venv = CACHE / "pip"
    if not (venv / "bin/pip").exists():
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    return str(venv / "bin/pip")


def fetch_wheels(lock: Path | None = None) -> Path:
    """Download the locked Python packages for the appliance, which then needs no network. Returns their folder.

    ``lock`` is the lock file of another version of Larder.
    """
    folder = CACHE / f"wheels-{digest_of([], extra=lock.read_text()) if lock else digest_of(['requirements.lock'])}"
    with lock_layer("wheels"):
        if not (folder / "done").exists():
            say("Fetching the locked Python packages.")
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            argv = [
                make_pip(),
                "download",
                "--quiet",
                "--no-deps",
                "--only-binary=:all:",
                "--python-version",
                "3.13",
            ]
            argv += ["--implementation", "cp", "--abi", "cp313", "--abi", "abi3", "--abi", "none"]
            argv += [
                "--platform",
                "manylinux_2_28_x86_64",
                "--platform",
                "manylinux2014_x86_64",
                "--platform",
                "manylinux_2_17_x86_64",
            ]
            run(
                *argv,
                "--require-hashes",
                "-r",
                str(lock or CHECKOUT / "requirements.lock"),
                "-d",
                str(folder),
                log=folder / "log",
            )
            (folder / "done").touch()
            forget_old("wheels", folder)
    return folder


CONFIGURE = """
set -eu
echo larder > /etc/hostname
printf '127.0.0.1 localhost\\n127.0.1.1 larder\\n' > /etc/hosts
printf 'auto lo\\niface lo inet loopback\\nauto eth0\\niface eth0 inet dhcp\\n' > /etc/network/interfaces
printf '/dev/vda / ext4 errors=remount-ro,noatime 0 1\\n' > /etc/fstab
printf 'PasswordAuthentication no\\nPermitRootLogin prohibit-password\\nUseDNS no\\n' > /etc/ssh/sshd_config.d/appliance.conf
mkdir -p -m 700 /root/.ssh && cp /tmp/key.pub /root/.ssh/authorized_keys && rm /tmp/key.pub
ssh-keygen -A >/dev/null
passwd -l root >/dev/null
systemctl disable -q redis-server.service apt-daily.timer apt-daily-upgrade.timer e2scrub_all.timer fstrim.timer man-db.timer dpkg-db-backup.timer 2>/dev/null || true
systemctl mask -q systemd-firstboot.service
# QEMU keeps the clock of the machine, and tests set it.
systemctl mask -q systemd-timesyncd.service
echo zfs > /etc/modules-load.d/zfs.conf
"""


def build_system_layer() -> Path:
    """Return the system layer: a folder with ``root.qcow2``, ``vmlinuz``, ``initrd.img`` and the key to log in."""
    under = build_base_layer()
    layer = CACHE / f"system-{digest_of(SHIPPED, extra=under.name + CONFIGURE)}"
    with lock_layer("system"):
        if (layer / "done").exists():
            (layer / "done").touch()
            return layer
        say("Installing this checkout into the image.")
        shutil.rmtree(layer, ignore_errors=True)
        root, log = layer / "rootfs", layer / "log"
        layer.mkdir(parents=True)
        run("cp", "-a", "--reflink=auto", str(under / "rootfs"), str(root), log=log)
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(layer / "id_ed25519"), log=log)
        shutil.copy(layer / "id_ed25519.pub", root / "tmp/key.pub")
        for name in (*SHIPPED, "Makefile"):
            source, target = CHECKOUT / name, root / "tmp/larder" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
            else:
                shutil.copy(source, target)
        shutil.copytree(fetch_wheels(), root / "tmp/wheels")
        inside = (
            'mount -t proc proc "$0/proc" && mount --bind /dev/null "$0/dev/null" && exec chroot "$0" env -i '
            'PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"'
        )
        chroot = ["unshare", "--mount", "--pid", "--fork", "sh", "-c", inside, str(root)]
        run(*chroot, "LARDER_WHEELS=/tmp/wheels", "/tmp/larder/deploy/install", log=log)
        run(*chroot, "sh", "-c", CONFIGURE, log=log)
        shutil.rmtree(root / "tmp/larder")
        shutil.rmtree(root / "tmp/wheels")
        for kind in ("vmlinuz", "initrd.img"):
            shutil.copy(next((root / "boot").glob(f"{kind}-*")), layer / kind)
        run("mkfs.ext4", "-q", "-F", "-d", str(root), str(layer / "root.img"), "6G", log=log)
        run("qemu-img", "convert", "-O", "qcow2", str(layer / "root.img"), str(layer / "root.qcow2"), log=log)
        (layer / "root.img").unlink()
        shutil.rmtree(root)
        (layer / "done").touch()
        forget_old("system", layer)
        return layer
