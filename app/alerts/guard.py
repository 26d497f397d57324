"""The address guard: which addresses may be connected to, decided on the address itself and not on the name. Pure.

Names, redirects, and the decimal, octal and hexadecimal spellings of addresses are tricks on the way to an address; a check
of the address that is about to be connected to meets them all, and leaves no time for a name to change its mind between
the check and the connection (DNS rebinding). `GuardedBackend` connects so; `probe` asks the same `Guard`. Spellings that an
HTTP client would refuse to read, or to resolve, are read by `literal_of` first, so that all are refused with one sentence.

Sources: the IANA special-purpose registries of IPv4 and IPv6; RFC 3056 (6to4), 4291 (mapped, compatible), 5214 (ISATAP),
6052 and 8215 (NAT64), 7915 (translated); the clouds' metadata addresses.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from app.errors import ForbiddenError

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_DENIED_4 = tuple(
    map(
        IPv4Network,
        (
            "0.0.0.0/8",  # this host and network
            "10.0.0.0/8",  # private
            "100.64.0.0/10",  # carrier-grade NAT; Alibaba's metadata at 100.100.100.200
            "127.0.0.0/8",  # loopback
            "168.63.129.16/32",  # Azure's host, a public address that only its guests reach
            "169.254.0.0/16",  # link-local; metadata of AWS, GCP, Azure, …
            "172.16.0.0/12",  # private
            "192.0.0.0/24",  # protocol assignments; Oracle's metadata at 192.0.0.192
            "192.0.2.0/24",  # documentation
            "192.88.99.0/24",  # 6to4 relays, withdrawn
            "192.168.0.0/16",  # private
            "198.18.0.0/15",  # benchmarks
            "198.51.100.0/24",  # documentation
            "203.0.113.0/24",  # documentation
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",  # reserved, and broadcast
        ),
    )
)
_NUMBER = re.compile(r"0x[0-9a-f]+|[0-9]+")
_GLOBAL_6 = IPv6Network("2000::/3")
_DENIED_6 = tuple(
    map(
        IPv6Network,
        (
            "2001::/23",  # protocol assignments: Teredo, benchmarks, ORCHID
            "2001:db8::/32",  # documentation
            "3fff::/20",  # documentation
        ),
    )
)
_NAT64 = IPv6Network("64:ff9b::/96")
_SIX_TO_FOUR = IPv6Network("2002::/16")
_IN_LAST_32 = tuple(map(IPv6Network, ("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96")))
"""Compatible, mapped and translated addresses: IPv4 in other words."""


def embedded(address: IPv6Address) -> Iterator[IPv4Address]:
    """The IPv4 addresses that packets to this IPv6 address may end at."""
    number = int(address)
    last = IPv4Address(number & 0xFFFF_FFFF)
    if address in _NAT64 or any(address in network for network in _IN_LAST_32):
        yield last
    if address in _SIX_TO_FOUR:
        yield IPv4Address(number >> 80 & 0xFFFF_FFFF)
    if number >> 32 & 0xFDFF_FFFF == 0x5EFE:  # ISATAP, with either setting of the universal bit
        yield last


def is_public(address: Address) -> bool:
    """Is it an address of the public internet, itself and in everything that it embeds?"""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _DENIED_4)
    inner = tuple(embedded(address))
    if not all(map(is_public, inner)):
        return False
    if any(address in network for network in _IN_LAST_32) or address in _NAT64:
        return True
    return address in _GLOBAL_6 and not any(address in network for network in _DENIED_6)


def is_allowed(address: Address, allow_networks: Iterable[Network]) -> bool:
    """Is it covered by a network of the list, as it is or as the IPv4 address that it is another word for?"""
    spellings: list[Address] = [address]
    if isinstance(address, IPv6Address) and any(address in network for network in _IN_LAST_32):
        spellings += embedded(address)
    networks = tuple(allow_networks)
    return any(spelling.version == network.version and spelling in network for spelling in spellings for network in networks)


def check_address(address: Address, allow_networks: Iterable[Network] = ()) -> None:
    """Let pass what is public or in `allow_networks`.

    Raises:
        ForbiddenError: anything else, always with the same sentence.
    """
    if not is_public(address) and not is_allowed(address, allow_networks):
        raise ForbiddenError(f"connecting to {address} is not allowed: it is no public address and not in allow_networks")


@dataclass(frozen=True, slots=True)
class Guard:
    """`check_address` with the networks that the configuration allows at this moment.

    Args:
        allow_networks: CIDRs, as the config file has them; validated there.
    """

    allow_networks: Callable[[], Sequence[str]]

    def __call__(self, address: Address) -> None:
        """Raises ForbiddenError for what may not be connected to."""
        check_address(address, [ip_network(text, strict=False) for text in self.allow_networks()])


def literal_of(host: str) -> Address | None:
    """The address that a host of a URL spells, in any of the ways that programs read: decimal, octal, hexadecimal, short, in
    full-width digits, with a dot behind it, with a zone. None: it is a name.
    """
    text = unicodedata.normalize("NFKC", host).replace("\u3002", ".").strip("[]").split("%", 1)[0].removesuffix(".")
    try:
        return ip_address(text)
    except ValueError:
        return _loose(text.lower())


def _loose(text: str) -> IPv4Address | None:
    """IPv4 as `inet_aton` of the C library reads it: one to four numbers of any base, the last for all bytes that are left."""
    parts = text.split(".")
    if len(parts) > 4 or not all(map(_NUMBER.fullmatch, parts)):
        return None
    try:
        *front, last = [int(part, 16 if part.startswith("0x") else 8 if part.startswith("0") else 10) for part in parts]
    except ValueError:  # an 8 or 9 in an octal number
        return None
    if any(number > 255 for number in front) or last >= 256 ** (4 - len(front)):
        return None
    return IPv4Address(sum(number << 8 * (3 - place) for place, number in enumerate(front)) + last)


def address_of(text: str) -> Address:
    """The address that a resolver answered; a zone (`fe80::1%eth0`) does not count."""
    return ip_address(text.split("%", 1)[0])
