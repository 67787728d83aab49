"""Which addresses are everybody's: never this machine, its network, or what a cloud hides behind an address (pain Q9)."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

#: Global by the letter of the registries, and still nobody's public server.
_NOT_V4 = tuple(
    map(
        IPv4Network,
        (
            "168.63.129.16/32",  # Azure's own services, from inside any machine there
            "192.0.0.0/24",  # protocol assignments; Oracle's metadata is at .192
            "192.88.99.0/24",  # relays into IPv6
        ),
    )
)
#: The only block that is handed out, and what in it is not a place of its own: tunnels, documentation, IETF's.
_V6 = IPv6Network("2000::/3")
_NOT_V6 = tuple(map(IPv6Network, ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")))


def is_public(text: str) -> bool:
    """Whether an address, as a resolver gives it, may be connected to on somebody else's behalf."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    if isinstance(address, IPv4Address):
        named = any(address in network for network in _NOT_V4)
        return address.is_global and not address.is_multicast and not named
    return address in _V6 and not any(address in network for network in _NOT_V6)
