"""A process knows when it cannot measure, and lets targets made by the API go only where the guard lets them."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from app.bootstrap.config import ConfigHolder
from app.bootstrap.core import Core, build_core
from app.bootstrap.probing import FORGOTTEN_S, Watchful, build_prober
from app.catalog.load import load_catalog
from app.clock import FakeClock
from app.measurement.model import Outcome, Reading
from app.measurement.recording import HostHealth, Marks, Recording
from app.probe.canary import Canary
from app.probe.lag import LagMeter
from app.secrets import Redactor
from app.settings import Settings
from app.targets.model import Config, Provider, Recipe, Target
from tests.support.runs import NOW, run


def core(tmp_path: Path, *, allow: tuple[str, ...] = ()) -> Core:
    catalog = load_catalog()
    holder = ConfigHolder(catalog=catalog)
    holder.current = Config(allow_networks=allow)
    settings = Settings(_env_file=None, data=tmp_path, neutral_addresses="off")
    return build_core(settings, dsn="postgresql://u@127.0.0.1:1/x", holder=holder, redactor=Redactor(), catalog=catalog)


def target(url: str = "http://127.0.0.1:9/v1") -> Target:
    return Target(
        name="t", provider=Provider(name="p", base_url=url), model="m", every_s=60.0, recipe=Recipe(name="chat-short")
    )


def probe(made: Core, each: Target) -> Reading:
    async def main() -> Reading:
        async with AsyncExitStack() as stack:
            _, reading = await build_prober(made, stack).probe(each)
            return reading

    return asyncio.run(main())


def test_a_target_of_the_file_may_be_anywhere(tmp_path: Path) -> None:
    m = probe(core(tmp_path), target()).measurement
    assert m.outcome is Outcome.PROVIDER_ERROR  # nobody listens there, which is not our decision


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/v1", "http://localhost:9/v1", "http://[::ffff:127.0.0.1]:9/v1"])
def test_a_target_made_by_the_api_may_not_be_on_this_host(tmp_path: Path, url: str) -> None:
    m = probe(core(tmp_path), replace(target(url), origin="api")).measurement
    assert m.outcome is Outcome.LOCAL_ERROR
    assert "is not allowed: it is no public address and not in allow_networks" in (m.error_text or "")


def test_the_networks_of_the_configuration_are_allowed(tmp_path: Path) -> None:
    m = probe(core(tmp_path, allow=("127.0.0.0/8",)), replace(target(), origin="api")).measurement
    assert m.outcome is Outcome.PROVIDER_ERROR


class Late:
    """A wire on a host whose loop is late by what is set."""

    lag_s = 0.0

    async def probe(self, target: Target, *, scheduled_at: datetime | None = None) -> tuple[Recording, Reading]:
        recording = Recording(
            base_url="",
            model=target.model,
            recipe="r",
            dialect="openai",
            marks=Marks(started=0),
            started_at=scheduled_at or NOW,
        )
        recording.host = HostHealth(loop_lag_max_s=self.lag_s)
        return recording, Reading(measurement=run().measurement)


def test_a_loop_that_is_late_in_most_runs_is_trouble_and_a_single_spike_is_none() -> None:
    async def main() -> None:
        wire = Late()
        canary = Canary(inner=wire, look=None, clock=FakeClock(), providers=lambda: 1)
        watchful = Watchful(canary=canary, lag=LagMeter())
        for lag, trouble in [
            *[(0.01, None)] * 5,
            *[(0.9, None)] * 5,
            (0.9, "loop_late"),
            (0.01, "loop_late"),
            (0.9, "loop_late"),
        ]:
            wire.lag_s = lag
            await watchful.probe(target())
            assert watchful.trouble() == trouble
        canary.clock.advance(FORGOTTEN_S + 1)  # type: ignore[attr-defined]  # a clock wound by hand
        assert watchful.trouble() is None
        canary.down = True
        assert watchful.trouble() == "no_network"

    asyncio.run(main())
