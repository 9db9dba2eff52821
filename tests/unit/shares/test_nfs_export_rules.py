"""Who may mount over NFS: what is taken, in which spelling, and what is not."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.errors import Refused
from appliance.shares import nfs_export_rules
from tests.reasons import expect_refusal


@pytest.mark.parametrize(
    ("text", "spelt"),
    [
        ("192.168.1.0/24", "192.168.1.0/24"),
        ("192.168.1.20", "192.168.1.20"),
        ("192.168.1.20/32", "192.168.1.20"),
        ("FD00::/8", "fd00::/8"),
        ("fc00::/7", "fc00::/7"),
        ("2001::/16", "2001::/16"),
        ("fd00::0001", "fd00::1"),
        ("iMac.local", "imac.local"),
        ("mediaplayer", "mediaplayer"),
        ("10.0.0.0/8", "10.0.0.0/8"),
        ("cafe", "cafe"),
        ("3com", "3com"),
    ],
)
def test_addresses_networks_and_names_are_taken_in_one_spelling(text, spelt):
    assert nfs_export_rules.check_client(text) == spelt


@pytest.mark.parametrize(
    "text",
    [
        "",
        "*",
        "*.lan",
        "@workers",
        "0.0.0.0/0",
        "::/0",
        "0.0.0.0/1",
        "128.0.0.0/1",
        "8.0.0.0/7",
        "::/1",
        "2000::/3",
        "2000::/15",
        "fc00::/6",
        "192.168.1.20/24",
        "192.168.1.300",
        "192.168.1.0/33",
        "fe80::1%eth0",
        "a b",
        "a(rw)",
        "host(rw,no_root_squash)",
        "a\nb",
        "a\0b",
        "-host",
        "host-",
        "host..lan",
        "x" * 64,
        "a." * 130 + "b",
        "192.168.1.0/255.255.255.0",
        "gss/krb5",
        "#x",
        'a"b',
        "a\\040b",
        "höst",
        "１９２.168.1.1",
        "1.2.3",
        "256",
        "::ffff:1.2.3.4.5",
        "224.0.0.1",
        "0.0.0.0",
    ],
)
def test_whatever_else_is_refused(text):
    with pytest.raises(Refused):
        nfs_export_rules.check_client(text)


def test_an_address_inside_a_network_is_refused_with_what_was_meant():
    with pytest.raises(Refused) as caught:
        nfs_export_rules.check_client("192.168.1.20/24")
    (reason,) = caught.value.reasons
    assert reason.code == "nfs-address-in-network"
    assert reason.message.arguments["network"] == "192.168.1.0/24"
    assert reason.message.arguments["address"] == "192.168.1.20"


@given(st.text(max_size=40))
def test_what_is_taken_can_never_leave_its_place_in_the_file(text):
    try:
        found = nfs_export_rules.check_client(text)
    except Refused:
        return
    assert re.fullmatch(r"[a-z0-9.:/-]+", found)
    assert nfs_export_rules.check_client(found) == found


def test_a_list_has_each_once_and_an_end():
    assert nfs_export_rules.check_clients(("192.168.1.9/32", "192.168.1.9", "imac.local")) == (
        "192.168.1.9",
        "imac.local",
    )
    with expect_refusal("nfs-clients-not-chosen"):
        nfs_export_rules.check_clients(())
    with expect_refusal("nfs-clients-too-many"):
        nfs_export_rules.check_clients(tuple(f"10.0.0.{number}" for number in range(1, 80)))


def test_what_reaches_beyond_the_house_is_known():
    assert nfs_export_rules.is_public("8.8.8.0/24")
    assert not nfs_export_rules.is_public("192.168.1.0/24")
    assert not nfs_export_rules.is_public("imac.local")
