"""What is no public address is not connected to, however it is spelt, named or hidden, unless the configuration allows it."""

import asyncio
import socket
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any

import httpcore2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.alerts.backend import GuardedBackend, resolve
from app.alerts.guard import Address, Guard, address_of, check_address, embedded, is_public
from app.errors import ForbiddenError


def _words(text: str) -> list[str]:
    return text.split()


DENIED = _words("""
0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.100.100.200 100.127.255.255 127.0.0.1 127.1.2.3 127.255.255.255
168.63.129.16 169.254.0.1 169.254.169.254 169.254.170.2 172.16.0.1 172.31.255.255 192.0.0.1 192.0.0.192 192.0.2.1 192.88.99.1
192.168.0.1 192.168.255.255 198.18.0.1 198.19.255.255 198.51.100.7 203.0.113.9 224.0.0.1 239.255.255.250 240.0.0.1 255.255.255.255
:: ::1 ::2 fe80::1 febf::1 fec0::1 fc00::1 fd00:ec2::254 fdff::1 ff02::1 ff0e::1 100::1 100:0:0:1::1 2001:db8::1 3fff::1 2001:2::1
2001:10::1 2001:20::1 4000::1 5f00::1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 ::ffff:0:0 ::ffff:a9fe:a9fe
::127.0.0.1 ::10.0.0.1 ::ffff:0:127.0.0.1 ::ffff:0:192.168.1.1 64:ff9b::127.0.0.1 64:ff9b::a9fe:a9fe 64:ff9b::10.0.0.1
64:ff9b:1::1 64:ff9b:1::8.8.8.8 2002:7f00:1:: 2002:a00:1::1 2002:a9fe:a9fe::1 2002:c0a8:101::1
2001:0:7f00:1::f7f7:f7f7 2001:0:808:808::f7f7:f7f7 2001:0:808:808::80ff:fffe 2001:0:808:808::5601:5601 2607:f8b0:4005:805:0:5efe:127.0.0.1
2607:f8b0:4005:805:200:5efe:10.0.0.1 fe80::5efe:10.0.0.1
""")

PUBLIC = _words("""
1.1.1.1 8.8.8.8 9.9.9.9 11.0.0.1 100.63.255.255 100.128.0.1 126.255.255.255 128.0.0.1 168.63.129.17 169.253.255.255 172.15.255.255
172.32.0.1 192.0.1.1 192.167.255.255 192.169.0.1 198.17.255.255 198.20.0.1 223.255.255.255 2606:4700:4700::1111 2a00:1450:4001::1
::ffff:8.8.8.8 64:ff9b::8.8.8.8 2002:808:808::1 2607:f8b0:4005:805:0:5efe:8.8.8.8
""")


@pytest.mark.parametrize("text", DENIED)
def test_it_refuses_what_is_not_public_with_one_sentence(text: str) -> None:
    with pytest.raises(
        ForbiddenError, match=r"^connecting to .* is not allowed: it is no public address and not in allow_networks$"
    ):
        check_address(ip_address(text))


@pytest.mark.parametrize("text", PUBLIC)
def test_it_lets_public_addresses_pass(text: str) -> None:
    check_address(ip_address(text))


def test_the_table_is_long_enough_to_mean_something() -> None:
    assert len(set(DENIED)) >= 40


def test_a_network_of_the_configuration_is_allowed_and_its_neighbours_are_not() -> None:
    networks = [ip_network("10.1.0.0/16"), ip_network("fd12::/16")]
    for text in ("10.1.2.3", "::ffff:10.1.2.3", "fd12::7"):
        check_address(ip_address(text), networks)
    for text in ("10.2.0.1", "::ffff:10.2.0.1", "fd13::7", "127.0.0.1", "64:ff9b::10.1.2.3"):
        with pytest.raises(ForbiddenError):
            check_address(ip_address(text), networks)


def test_the_guard_asks_the_configuration_each_time() -> None:
    allowed: list[str] = []
    guard = Guard(lambda: allowed)
    with pytest.raises(ForbiddenError):
        guard(ip_address("192.168.7.7"))
    allowed.append("192.168.7.9/24")
    guard(ip_address("192.168.7.7"))


@given(st.ip_addresses(v=4))
def test_whatever_wraps_an_ipv4_address_is_as_public_as_that_address(inner: IPv4Address) -> None:
    number = int(inner)
    wrapped = [
        IPv6Address(0xFFFF << 32 | number),
        IPv6Address(0x64FF9B << 96 | number),
        IPv6Address(0x2002 << 112 | number << 80 | 1),
        IPv6Address(0x26070000 << 96 | 0x5EFE << 32 | number),
    ]
    for address in wrapped:
        assert inner in tuple(embedded(address))
        assert is_public(address) == is_public(inner)


@given(st.ip_addresses(v=4))
def test_it_never_lets_pass_what_the_standard_library_calls_private(address: IPv4Address) -> None:
    if not address.is_global:
        assert not is_public(address)


@given(st.ip_addresses(v=6))
def test_of_ipv6_it_never_lets_pass_what_the_standard_library_calls_private(address: IPv6Address) -> None:
    if not address.is_global and not tuple(embedded(address)):
        assert not is_public(address)


def test_a_zone_does_not_hide_an_address() -> None:
    assert address_of("fe80::1%eth0") == ip_address("fe80::1")


class Inner(httpcore2.AsyncNetworkBackend):
    """Remembers where it was told to connect; the addresses in `dead` do not answer."""

    def __init__(self, dead: tuple[str, ...] = ()) -> None:
        self.asked: list[tuple[str, float | None]] = []
        self.dead = dead

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore2's name
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        self.asked.append((host, timeout))
        if host in self.dead:
            raise httpcore2.ConnectTimeout(host)
        return httpcore2.AsyncMockStream([])


def connect(
    host: str, *, answers: list[str] | None = None, inner: Inner | None = None, allow: tuple[str, ...] = ()
) -> list[str]:
    inner = inner or Inner()

    async def told(_host: str, _port: int) -> list[Address]:
        return [ip_address(text) for text in answers or []]

    backend = GuardedBackend(Guard(lambda: allow), inner=inner, resolver=resolve if answers is None else told)
    asyncio.run(backend.connect_tcp(host, 80, timeout=8.0))
    return [host for host, _ in inner.asked]


SPELLINGS = [
    "127.0.0.1",
    "127.1",
    "2130706433",
    "0x7f000001",
    "0177.0.0.1",
    "0x7f.0.0.1",
    "017700000001",
    "0",
    "::1",
    "::ffff:7f00:1",
    "localhost",
]


@pytest.mark.parametrize("host", SPELLINGS)
def test_every_spelling_of_loopback_ends_at_loopback_and_is_refused(host: str) -> None:
    inner = Inner()
    with pytest.raises(ForbiddenError):
        connect(host, inner=inner)
    assert inner.asked == []


@pytest.mark.parametrize("host", ["2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "169.16689662"])
def test_every_spelling_of_the_metadata_address_is_refused(host: str) -> None:
    with pytest.raises(ForbiddenError, match=r"169\.254\.169\.254"):
        connect(host)


def test_it_connects_to_exactly_the_address_that_it_checked() -> None:
    assert connect("rebinding.example", answers=["93.184.216.34"]) == ["93.184.216.34"]


def test_a_name_is_resolved_once_so_that_it_cannot_change_its_mind() -> None:
    calls = []

    async def flipping(_host: str, _port: int) -> list[Address]:
        calls.append(1)
        return [ip_address("93.184.216.34" if len(calls) == 1 else "127.0.0.1")]

    inner = Inner()
    backend = GuardedBackend(Guard(lambda: ()), inner=inner, resolver=flipping)
    asyncio.run(backend.connect_tcp("x.example", 443))
    assert [host for host, _ in inner.asked] == ["93.184.216.34"]
    with pytest.raises(ForbiddenError):
        asyncio.run(backend.connect_tcp("x.example", 443))
    assert len(inner.asked) == 1


def test_of_several_addresses_only_the_allowed_are_tried() -> None:
    assert connect("mixed.example", answers=["10.0.0.1", "93.184.216.34", "::1"]) == ["93.184.216.34"]


def test_when_one_address_does_not_answer_the_next_is_tried_within_the_same_time() -> None:
    inner = Inner(dead=("93.184.216.34",))
    assert connect("two.example", answers=["93.184.216.34", "93.184.216.35"], inner=inner) == ["93.184.216.34", "93.184.216.35"]
    assert sum(timeout or 0 for _, timeout in inner.asked) <= 12.0


def test_when_no_address_answers_the_failure_is_the_networks() -> None:
    with pytest.raises(httpcore2.ConnectTimeout):
        connect("dead.example", answers=["93.184.216.34"], inner=Inner(dead=("93.184.216.34",)))


def test_a_name_without_an_address_is_a_failure_to_connect() -> None:
    with pytest.raises(httpcore2.ConnectError):
        connect("none.example", answers=[])


def test_a_name_that_cannot_be_one_is_a_failure_to_connect() -> None:
    with pytest.raises(httpcore2.ConnectError):
        connect("a" * 300)


def test_an_allowed_network_is_connected_to() -> None:
    assert connect("127.0.0.1", allow=("127.0.0.0/8",)) == ["127.0.0.1"]


def test_sockets_of_the_machine_are_refused() -> None:
    with pytest.raises(ForbiddenError):
        asyncio.run(GuardedBackend(Guard(lambda: ())).connect_unix_socket("/run/docker.sock"))


def test_a_real_connection_is_made_where_it_is_allowed() -> None:
    async def main() -> None:
        server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        backend = GuardedBackend(Guard(lambda: ("127.0.0.1/32",)))
        options = [(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)]
        stream = await backend.connect_tcp("localhost", port, timeout=5, socket_options=options)
        assert await stream.read(1, timeout=5) == b""
        await backend.sleep(0)
        await stream.aclose()
        server.close()
        await server.wait_closed()

    asyncio.run(main())
