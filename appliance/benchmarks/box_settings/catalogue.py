"""The settings that can be tried, each with what it is now and what is tried."""

from __future__ import annotations

from typing import Any

import msgspec

from appliance.benchmarks.box_settings.catalogue_entry import BoxSetting
from appliance.benchmarks.box_settings.frame_size import FRAME_SIZE, TAG
from appliance.benchmarks.box_settings.nfs_threads import NFS_THREADS
from appliance.benchmarks.box_settings.port_settings import FLOW_CONTROL, INTERRUPTS, RING_SIZES
from appliance.benchmarks.box_settings.samba_options import ASYNCHRONOUS, SOCKET_BUFFERS
from appliance.benchmarks.box_settings.tcp_buffers import TCP_BUFFERS
from appliance.errors import Reason, Refused
from appliance.system import mtu, service_start

SETTINGS: dict[str, BoxSetting] = {
    "tcp-buffers": TCP_BUFFERS,
    TAG: FRAME_SIZE,
    "ring-sizes": RING_SIZES,
    "flow-control": FLOW_CONTROL,
    "interrupts": INTERRUPTS,
    "nfs-threads": NFS_THREADS,
    "smb-async": ASYNCHRONOUS,
    "smb-socket": SOCKET_BUFFERS,
}


class SettingStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A setting as it is. ``value`` and ``tried`` as ``show`` takes them, empty where there is none; ``refusal``: why
    it cannot be tried, as ``Reason.as_json`` has it; ``kept``: the value before it was kept, empty where it is as it
    came; ``lost``: the ports it is kept for that are not there."""

    tag: str
    value: str = ""
    tried: str = ""
    refusal: dict[str, Any] | None = None
    kept: str = ""
    lost: tuple[str, ...] = ()


def find_setting(tag: str) -> BoxSetting:
    """Raises Refused."""
    if tag not in SETTINGS:
        raise Refused(Reason("setting-unknown", "There is no such setting to try.", field="setting"))
    return SETTINGS[tag]


def list_lost(tag: str) -> tuple[str, ...]:
    """The ports that a setting is kept for and that are not there, so that it does nothing.
    An MTU is kept by the port's name."""
    if tag != TAG:
        lost = find_setting(tag).lost_port()
        return (lost,) if lost else ()
    return tuple(name for name in mtu.list_confirmed() if not (mtu.PORTS / name).exists())


def read_setting(tag: str) -> SettingStatus:
    """Raises Refused for a setting that there is not."""
    setting = find_setting(tag)
    kept, value, lost = setting.read_former(), "", list_lost(tag)
    try:
        service_start.refuse_container()
        value = setting.read()
        return SettingStatus(tag=tag, value=value, tried=setting.propose(value), kept=kept, lost=lost)
    except Refused as refused:
        return SettingStatus(tag=tag, value=value, refusal=refused.reasons[0].as_json(), kept=kept, lost=lost)
