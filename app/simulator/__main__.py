"""`python -m app.simulator --port P [--scenario demo] [--seed N]`: the simulated providers in a process of their own."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Sequence

LEASH = "BANDWATCH_LEASH_FD"
"""Names the read end of a pipe that the parent holds open: at its end of file the parent is gone, and so are we."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM, SIGINT, or the parent's death. Returns 0; 1 when the port is in use."""
    from app.simulator.scenarios import SCENARIOS

    parser = argparse.ArgumentParser(prog="python -m app.simulator", description="Simulated LLM providers.")
    parser.add_argument("--address", default="127.0.0.1", help="address to listen on")
    parser.add_argument("--port", type=int, default=0, help="port to listen on; 0 takes a free one")
    parser.add_argument("--scenario", choices=sorted(SCENARIOS), default="demo", help="which providers to play")
    parser.add_argument("--seed", type=int, default=0, help="the same seed plays the same faults and waits")
    options = parser.parse_args(arguments)
    try:
        asyncio.run(_serve(options.address, options.port, options.scenario, options.seed))
    except OSError as error:
        print(f"simulator: cannot listen on {options.address}:{options.port}: {error.strerror}", file=sys.stderr)  # noqa: T201 - its only voice
        return 1
    return 0


async def _serve(address: str, port: int, scenario: str, seed: int) -> None:
    from app.catalog.load import load_catalog
    from app.simulator.scenarios import SCENARIOS
    from app.simulator.server import serve

    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if LEASH in os.environ:
        loop.add_reader(int(os.environ[LEASH]), stop.set)
    async with serve(SCENARIOS[scenario], catalog=load_catalog(), address=address, port=port, seed=seed) as server:
        print(f"simulator: listening on http://{address}:{server.port}", flush=True)  # noqa: T201 - tells the parent its port
        await stop.wait()


if __name__ == "__main__":
    sys.exit(main())
