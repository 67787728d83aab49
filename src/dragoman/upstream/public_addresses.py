"""Decide which IP addresses the gateway may connect to for a caller (known problem Q9).

Loopback, private networks and the metadata services of cloud providers are excluded, so that a URL in a
request cannot reach them (server-side request forgery).
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

#: `ipaddress` counts these as global (the IANA registries do), but no public server uses them.
_EXCLUDED_V4 = tuple(
    map(
        IPv4Network,
        (
            "168.63.129.16/32",  # Azure's WireServer, reachable from every virtual machine there
            "192.0.0.0/24",  # IETF protocol assignments; Oracle Cloud's metadata service is at 192.0.0.192
            "192.88.99.0/24",  # 6to4 relay anycast (RFC 3068)
        ),
    )
)
#: The block that IANA allocates for global unicast, and the ranges in it that are not ordinary hosts: IETF
#: protocol assignments (with Teredo), documentation (two ranges) and 6to4 tunnels.
_GLOBAL_UNICAST_V6 = IPv6Network("2000::/3")
_EXCLUDED_V6 = tuple(map(IPv6Network, ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")))


def is_public(text: str) -> bool:
    """Return whether a resolved IP address is public; text that is not an IP address is not."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    if isinstance(address, IPv4Address):
        named = any(address in network for network in _EXCLUDED_V4)
        return address.is_global and not address.is_multicast and not named
    return address in _GLOBAL_UNICAST_V6 and not any(address in network for network in _EXCLUDED_V6)
