"""Reaching the scratch folder as another computer would, over the box's own loopback: through SMB and through NFS.

The wire is left out of it, so what is measured is the folder and the protocol. The client is the kernel's (``mount.cifs``,
``mount.nfs``): the same programs then write and read the same files, whichever way they take. A client in user space
(smbclient, libnfs) would bring its own speed along, and has no fsync.

SMB is a Samba of its own on a free port, with its own settings and its own password in the scratch's folder: what people
are served meanwhile is not touched. It stays in the agent's control group, so systemd ends it with the agent, however that
ends. NFS has one server, the kernel's: the export is added by ``exportfs`` alone, in no file, and is for the box itself
from a port that only root may use (``secure``). It is version 3, which needs no path from the top that is exported too.

AFP has no client that mounts. There the program that measures is the client, and serves the folder to itself
(``over_afp.py``): nothing of it is here, nor left when it has ended.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path

from appliance import command
from appliance.disks.udev import LOOKS, SECONDS_BETWEEN_LOOKS
from appliance.errors import Failed
from appliance.shares import nfs
from appliance.shares.smb import STACK
from appliance.system import paths

PROC = Path("/proc")
HOST, SHARE = "127.0.0.1", "sweep"
# The server, and what it brings along and leaves behind (nfs-server.service, "Wants"): the port mapper answers the network.
UNITS = (nfs.UNIT, "rpc-statd.service", "rpcbind.socket", "rpcbind.service")
TIMEOUT = 120
# exports(5): no "insecure", so a client has to come from a port that only root may use.
OPTIONS = "rw,sync,no_root_squash,no_subtree_check,secure"
MOUNTED = ("smb", "nfs")  # the protocols through which the folder is mounted
SETTINGS = """\
[global]
   server role = standalone
   server min protocol = SMB2_10
   smb ports = {port}
   interfaces = 127.0.0.1
   bind interfaces only = yes
   hosts allow = 127.0.0.1
   passdb backend = tdbsam
   private dir = {own}
   lock directory = {own}
   state directory = {own}
   cache directory = {own}
   pid directory = {own}
   ncalrpc dir = {own}/rpc
   log file = {own}/log
   usershare max shares = 0
   load printers = no
   disable spoolss = yes
[sweep]
   path = {folder}
   read only = no
   valid users = root
   vfs objects = {stack}
"""


def client_mountpoint(token: str) -> Path:
    """Where the client sees the folder."""
    return paths.RUN / "sweeps" / f"{token}.seen"


def samba_folder(token: str) -> Path:
    """What the Samba of its own keeps while it runs."""
    return paths.RUN / "sweeps" / f"{token}.smb"


def mount_commands(protocol: str, folder: Path, token: str, port: int = 0) -> list[list[str]]:
    """What serves the folder and brings it to the client; ``port`` is Samba's."""
    if protocol not in MOUNTED:
        return []
    seen = str(client_mountpoint(token))
    if protocol == "nfs":
        return [
            ["exportfs", "-o", OPTIONS, f"{HOST}:{folder}"],
            ["mount", "-t", "nfs", "-o", "vers=3,proto=tcp,nolock,hard", f"{HOST}:{folder}", seen],
        ]
    conf = samba_folder(token) / "smb.conf"
    return [
        ["smbd", "-D", f"--configfile={conf}"],
        ["mount", "-t", "cifs", "-o", f"port={port},vers=3.1.1,credentials={conf.with_name('credentials')}", f"//{HOST}/{SHARE}", seen],
    ]  # fmt: skip


def mount_folder(protocol: str, folder: Path, token: str) -> None:
    """Serve the folder and have the client see it. Raises Failed."""
    if protocol not in MOUNTED:
        return
    client_mountpoint(token).mkdir(parents=True, exist_ok=True, mode=0o700)
    if protocol == "nfs":
        for argv in mount_commands(protocol, folder, token):
            command.run(argv, timeout=TIMEOUT)
        return
    port = write_samba_settings(folder, token)
    serve, mount = mount_commands(protocol, folder, token, port)
    command.run(serve, timeout=TIMEOUT)
    wait_until(lambda: is_port_open(port), "Samba did not begin to serve the scratch folder")
    command.run(mount, timeout=TIMEOUT)


def write_samba_settings(folder: Path, token: str) -> int:
    """Write what the Samba of its own needs, with a password that nobody else learns; its port."""
    own, password = samba_folder(token), secrets.token_hex(16)
    shutil.rmtree(own, ignore_errors=True)
    own.mkdir(parents=True, mode=0o700)
    with socket.socket() as free:
        free.bind((HOST, 0))
        port = int(free.getsockname()[1])
    (own / "smb.conf").write_text(SETTINGS.format(port=port, own=own, folder=folder, stack=" ".join(STACK)))
    credentials = own / "credentials"
    credentials.touch(mode=0o600)
    credentials.write_text(f"username=root\npassword={password}\n")
    command.run(["smbpasswd", "-c", str(own / "smb.conf"), "-s", "-a", "root"], given=f"{password}\n{password}\n")
    return port


def is_port_open(port: int) -> bool:
    try:
        socket.create_connection((HOST, port), 2).close()
    except OSError:
        return False
    return True


def unmount_folder(folder: Path, token: str) -> None:
    """Nobody sees the folder any more, and nothing of it is open: after this its pool can leave. Harmless to repeat."""
    seen, own = client_mountpoint(token), samba_folder(token)
    if seen.exists():
        # Twice where a mount that was cut short lies below another; the server may be gone, so the client is made to let go.
        for _ in range(2):
            if not os.path.ismount(seen):
                break
            command.run(["umount", "-f", str(seen)], timeout=TIMEOUT, accept=range(256))
        if os.path.ismount(seen):
            command.run(["umount", "-l", str(seen)], timeout=TIMEOUT)
        seen.rmdir()
    if own.exists():
        stop_samba(own)
        # Its helpers end a moment after it, and write until then.
        wait_until(lambda: is_removed(own), "What the Samba of the measurement kept could not be removed")
    if any(export.path == str(folder) for export in read_exports()):
        command.run(["exportfs", "-u", f"{HOST}:{folder}"], timeout=TIMEOUT, accept=range(256))
        command.run(["exportfs", "-f"], timeout=TIMEOUT)
        nfs.release(str(folder))


def is_removed(folder: Path) -> bool:
    shutil.rmtree(folder, ignore_errors=True)
    return not folder.exists()


def read_exports() -> list[nfs.Export]:
    return nfs.everything() if nfs.running() else []


def stop_samba(own: Path) -> None:
    """End the Samba of its own. Raises Failed where it stays."""
    found = [int(text) for path in own.glob("*.pid") if (text := path.read_text().strip()).isdigit()]
    for pid in filter(is_own_samba, found):
        os.kill(pid, signal.SIGTERM)
    wait_until(lambda: not any(map(is_own_samba, found)), "The Samba of the measurement did not end")


def is_own_samba(pid: int) -> bool:
    """Whether a process is a Samba that an agent has started: a number may have been given to another since."""
    process = PROC / str(pid)
    try:
        return process.joinpath("exe").readlink().name == "smbd" and "larder-agent" in (process / "cgroup").read_text()
    except OSError:
        return False


def wait_until(ready: Callable[[], bool], otherwise: str) -> None:
    """Look until it is so. Raises Failed with ``otherwise``."""
    for _ in range(LOOKS * 2):
        if ready():
            return
        time.sleep(SECONDS_BETWEEN_LOOKS)
    raise Failed(otherwise)


# --- the kernel's server, which people may use too --------------------------------------------------------------
def stopped_units() -> tuple[str, ...]:
    """What of the server would be started for this, in the order of stopping; nothing where it runs."""
    return () if nfs.running() else tuple(unit for unit in UNITS if not nfs.running(unit))


def start_nfs() -> None:
    """For the time being: what is enabled is not changed."""
    command.run(["systemctl", "start", nfs.UNIT], timeout=TIMEOUT)


def stop_nfs(units: tuple[str, ...]) -> None:
    """Stop what was started for this, unless somebody has begun to share something meanwhile."""
    if nfs.running() and not nfs.everything():
        command.run(["systemctl", "stop", *units], timeout=TIMEOUT)
