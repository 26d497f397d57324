"""Alive is not ready, and neither is ever slow: with the database away, refusing or silent."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from tests.support.doors import House, build_house, in_house

DSN = "postgresql://nobody@127.0.0.1:{port}/none"


@asynccontextmanager
async def silent_server() -> AsyncIterator[int]:
    """Accepts, and never says a word."""
    held = []

    async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        held.append(writer)
        await reader.read()

    server = await asyncio.start_server(hold, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for writer in held:
            writer.close()


def test_it_is_ready_when_the_database_answers(dsn: str) -> None:
    async def scenario(house: House) -> None:
        async with house.caller() as client:
            ready = await client.get("/readyz")
        assert (ready.status_code, ready.json()["status"]) == (200, "ok")

    in_house(dsn, scenario)


def test_a_silent_database_makes_it_unready_within_a_second_and_leaves_it_alive() -> None:
    async def main() -> None:
        async with silent_server() as port:
            house = build_house(DSN.format(port=port))
            async with house.caller() as client:
                await client.get("/livez")  # the first request of an application builds it
                for _ in range(2):
                    began = time.monotonic()
                    ready = await client.get("/readyz")
                    assert time.monotonic() - began < 1.0
                    assert ready.status_code == 503
                    assert ready.headers["content-type"] == "application/problem+json"
                assert (await client.get("/livez")).status_code == 200
            await house.database.close()

    asyncio.run(main())


def test_without_a_database_it_is_alive_shows_its_own_metrics_and_refuses_the_rest_politely() -> None:
    async def main() -> None:
        house = build_house(DSN.format(port=1))
        async with house.caller() as client:
            assert (await client.get("/livez")).status_code == 200
            assert (await client.get("/readyz")).status_code == 503
            metrics = await client.get("/metrics")
            assert (metrics.status_code, "bandwatch_database_up 0.0" in metrics.text) == (200, True)
            refused = await client.get("/api/v1/targets")
            assert (refused.status_code, refused.headers["content-type"]) == (503, "application/problem+json")
            assert refused.headers["retry-after"] == "5"
            assert "127.0.0.1" not in refused.text
        await house.database.close()

    asyncio.run(main())


def test_two_applications_in_one_process_do_not_get_into_each_others_way(dsn: str) -> None:
    async def scenario(house: House) -> None:
        other = build_house(dsn)
        for each in (house, other):
            async with each.caller() as client:
                assert (await client.get("/metrics")).status_code == 200
        await other.database.close()

    in_house(dsn, scenario)


def test_a_scrape_is_rendered_off_the_loop(dsn: str) -> None:
    """Rendered in the loop, a big scrape would delay every answer, and every probe where both share a process."""
    rendered_in: set[int] = set()

    class Name(str):
        """A label that notes in which thread it is written."""

        __slots__ = ()

        def replace(self, *change: Any) -> str:
            rendered_in.add(threading.get_ident())
            return super().replace(*change)

    async def scenario(house: House) -> None:
        one = house.holder.current.targets[0]
        house.holder.current = replace(house.holder.current, targets=(replace(one, name=Name("noted/one")),))
        async with house.caller() as client:
            answer = await client.get("/metrics")
        assert 'target="noted/one"' in answer.text
        assert rendered_in
        assert threading.get_ident() not in rendered_in

    in_house(dsn, scenario)
