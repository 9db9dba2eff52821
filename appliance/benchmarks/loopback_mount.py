"""Mount the scratch folder over the loopback by SMB or NFS, as another computer would.

This measures the folder and the protocol without a network. The clients are the kernel's (``mount.cifs``,
``mount.nfs``), so the same programs read and write the same files with every protocol. A client in user space
(smbclient, libnfs) would add its own speed, and has no fsync.

SMB uses a separate Samba on a free port, with its own settings and password, so the shares of users are not touched. It
stays in the agent's control group, so systemd ends it with the agent. NFS has only the kernel's server: ``exportfs``
adds an export, stored in no file, for the box itself and from privileged ports (``secure``). It is version 3, which
needs no exported root.

No AFP client can mount. There ``afp_benchmark.py`` is the client and serves the folder to
itself; it leaves nothing here.
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
from appliance.message import Message
from appliance.shares import nfs
from appliance.shares.smb import STACK
from appliance.system import paths

PROC = Path("/proc")
HOST, SHARE = "127.0.0.1", "sweep"
# The server and the units it starts (nfs-server.service, "Wants"), which would stay and listen on the network.
UNITS = (nfs.UNIT, "rpc-statd.service", "rpcbind.socket", "rpcbind.service")
TIMEOUT = 120
# exports(5): without "insecure", clients need a port that only root may use.
OPTIONS = "rw,sync,no_root_squash,no_subtree_check,secure"
MOUNTED = ("smb", "nfs")  # protocols that mount the folder
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
    """Where the client mounts the folder."""
    return paths.RUN / "sweeps" / f"{token}.seen"


def samba_folder(token: str) -> Path:
    """Folder for the files of the separate Samba."""
    return paths.RUN / "sweeps" / f"{token}.smb"


def mount_commands(protocol: str, folder: Path, token: str, port: int = 0) -> list[list[str]]:
    """The commands that serve the folder and mount it; ``port`` is Samba's."""
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
        [
            "mount",
            "-t",
            "cifs",
            "-o",
            f"port={port},vers=3.1.1,credentials={conf.with_name('credentials')}",
            f"//{HOST}/{SHARE}",
            seen,
        ],
    ]


def mount_folder(protocol: str, folder: Path, token: str) -> None:
    """Serve the folder and mount it. Raises Failed."""
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
    wait_until(lambda: is_port_open(port), Message("Samba did not begin to serve the scratch folder"))
    command.run(mount, timeout=TIMEOUT)


def write_samba_settings(folder: Path, token: str) -> int:
    """Write the settings of the separate Samba, with a random password. Returns its port."""
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
    """Unmount the folder and stop serving it, so that its pool can be exported. Harmless to repeat."""
    seen, own = client_mountpoint(token), samba_folder(token)
    if seen.exists():
        # Twice, because an interrupted mount may lie below another; forced, because the server may be gone.
        for _ in range(2):
            if not os.path.ismount(seen):
                break
            command.run(["umount", "-f", str(seen)], timeout=TIMEOUT, accept=range(256))
        if os.path.ismount(seen):
            command.run(["umount", "-l", str(seen)], timeout=TIMEOUT)
        seen.rmdir()
    if own.exists():
        stop_samba(own)
        # Its helper processes end a moment later, and write until then.
        wait_until(lambda: is_removed(own), Message("What the Samba of the measurement kept could not be removed"))
    if any(export.path == str(folder) for export in read_exports()):
        command.run(["exportfs", "-u", f"{HOST}:{folder}"], timeout=TIMEOUT, accept=range(256))
        command.run(["exportfs", "-f"], timeout=TIMEOUT)
        nfs.release_files(str(folder))


def is_removed(folder: Path) -> bool:
    shutil.rmtree(folder, ignore_errors=True)
    return not folder.exists()


def read_exports() -> list[nfs.Export]:
    return nfs.read_served() if nfs.is_running() else []


def stop_samba(own: Path) -> None:
    """Stop the separate Samba. Raises Failed if it does not end."""
    found = [int(text) for path in own.glob("*.pid") if (text := path.read_text().strip()).isdigit()]
    for pid in filter(is_own_samba, found):
        os.kill(pid, signal.SIGTERM)
    wait_until(lambda: not any(map(is_own_samba, found)), Message("The Samba of the measurement did not end"))


def is_own_samba(pid: int) -> bool:
    """Whether a process is a Samba started by the agent. Another process may have the same number by now."""
    process = PROC / str(pid)
    try:
        return process.joinpath("exe").readlink().name == "smbd" and "larder-agent" in (process / "cgroup").read_text()
    except OSError:
        return False


def wait_until(ready: Callable[[], bool], otherwise: str) -> None:
    """Wait until ``ready`` returns true. Raises Failed with the text ``otherwise``."""
    for _ in range(LOOKS * 2):
        if ready():
            return
        time.sleep(SECONDS_BETWEEN_LOOKS)
    raise Failed(otherwise)


# --- the kernel's NFS server, which users may need too ----------------------------------------------------------
def stopped_units() -> tuple[str, ...]:
    """Units that starting the NFS server would start, in the order to stop them; none if it runs."""
    return () if nfs.is_running() else tuple(unit for unit in UNITS if not nfs.is_running(unit))


def start_nfs() -> None:
    """Start the NFS server without enabling it."""
    command.run(["systemctl", "start", nfs.UNIT], timeout=TIMEOUT)


def stop_nfs(units: tuple[str, ...]) -> None:
    """Stop the units that were started for the benchmark, unless something else is exported by now."""
    if nfs.is_running() and not nfs.read_served():
        command.run(["systemctl", "stop", *units], timeout=TIMEOUT)
