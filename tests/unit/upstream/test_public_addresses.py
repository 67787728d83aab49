"""Which addresses may be asked on somebody else's behalf."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.upstream.remote_files import is_public


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "1.1.1.1", "93.184.216.34", "2606:2800:220:1::1", "2a00:1450::1"]
)
def test_everybodys_addresses(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.255.255.254", "0.0.0.0", "0.1.2.3", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.0.1",
        "169.254.169.254",  # metadata of AWS, Google, Azure
        "100.100.100.200",  # of Alibaba
        "192.0.0.192",  # of Oracle
        "168.63.129.16",  # Azure's wire server
        "100.64.0.1", "198.18.0.1", "192.0.2.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.1.1.1", "240.0.0.1",
        "255.255.255.255", "192.88.99.1", "::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "fec0::1",
        "ff02::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:10.0.0.1", "::127.0.0.1", "64:ff9b::7f00:1",
        "64:ff9b:1::1", "2002:7f00:1::", "2002:a9fe:a9fe::", "2001::1", "2001:0:7f00:1::", "2001:db8::1", "3fff::1",
        "5f00::1", "", "localhost", "2130706433", "0177.0.0.1", "0x7f.0.0.1", "127.1", "127.0.0.1.",
    ],
)  # fmt: skip
def test_q9_nobody_else_is_reached(address: str) -> None:
    assert not is_public(address)


@given(st.ip_addresses(v=4))
def test_q9_no_spelling_of_an_address_in_ipv6_opens_it(address: IPv4Address) -> None:
    """Only the mapped form is one of an IPv4 address, and it is as public as that; tunnels lead nowhere."""
    number = int(address)
    assert is_public(f"::ffff:{address}") == is_public(str(address))
    for prefix, shift in ((0, 0), (0x0064FF9B << 96, 0), (0x2002 << 112, 80)):
        assert not is_public(str(IPv6Address(prefix | number << shift)))
