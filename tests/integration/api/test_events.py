"""What happened, as a stream: each thing once, to everybody who listens, from one look a second."""

from datetime import timedelta

from app.api.feed import Feed
from tests.support.doors import BIG, House, in_house, seed


async def news(house: House, feed: Feed, after: int) -> list[tuple[int, str]]:
    house.clock.advance(1.0)
    return [(number, event.kind) for number, event in await feed.after(after)]


def test_a_run_its_verdict_and_its_incident_are_told_once_and_in_order(dsn: str) -> None:
    async def scenario(house: House) -> None:
        await seed(house, target="lab/tiny", runs=1)
        feed = Feed(house.database, house.clock)
        number = feed.join()
        assert await news(house, feed, number) == []  # what was there before is nobody's news
        await seed(house, runs=20, tps=100.0, expected=1000.0, every=timedelta(minutes=1))
        told = await news(house, feed, number)
        kinds = [kind for _, kind in told]
        assert kinds.count("incident") == 1
        assert kinds.count("verdict") >= 1
        assert kinds.count("run") >= 1
        assert [at for at, _ in told] == list(range(number + 1, number + 1 + len(told)))
        assert await news(house, feed, told[-1][0]) == []

    in_house(dsn, scenario)


def test_many_listeners_make_one_look_a_second(dsn: str) -> None:
    async def scenario(house: House) -> None:
        feed = Feed(house.database, house.clock)
        first, second = feed.join(), feed.join()
        await news(house, feed, first)
        await seed(house, target=BIG, runs=1)
        before = await feed.after(first)  # within the same second: no look
        assert before == []
        house.clock.advance(1.0)
        assert await feed.after(first) == await feed.after(second) != []
        feed.leave()
        feed.leave()
        assert feed.listeners == 0

    in_house(dsn, scenario)
