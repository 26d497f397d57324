"""The measurer measures itself: how late the event loop is while streams are running."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from dataclasses import dataclass, field

from app.measurement.recording import HostHealth

PERIOD_S = 0.01
KEPT = 60_000


@dataclass(slots=True)
class LagMeter:
    """Samples the loop's lateness every 10 ms while at least one run is in flight; idle, it costs nothing."""

    in_flight: int = 0
    _samples: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=KEPT))
    _handle: asyncio.TimerHandle | None = None
    _due: float = 0.0

    def begin(self) -> int:
        """A run starts; returns the instant that `end` wants back."""
        self.in_flight += 1
        if self._handle is None:
            self._arm()
        return time.monotonic_ns()

    def end(self, began: int) -> HostHealth:
        """A run is over: the lag during it, in seconds, and how many streams ran beside it."""
        flying = self.in_flight
        self.in_flight -= 1
        if self.in_flight == 0 and self._handle is not None:
            self._handle.cancel()
            self._handle = None
        lags = []
        for at, lag in reversed(self._samples):
            if at < began:
                break
            lags.append(lag)
        if not lags:
            return HostHealth(in_flight=flying)
        lags.sort()
        return HostHealth(
            loop_lag_p99_s=lags[min(len(lags) - 1, int(0.99 * len(lags)))] / 1e9,
            loop_lag_max_s=lags[-1] / 1e9,
            in_flight=flying,
        )

    def recent_max_s(self, seconds: float = 60.0) -> float:
        """The worst lag of the last `seconds`."""
        since = time.monotonic_ns() - int(seconds * 1e9)
        return max((lag for at, lag in self._samples if at >= since), default=0) / 1e9

    def _arm(self) -> None:
        loop = asyncio.get_running_loop()
        self._due = loop.time() + PERIOD_S
        self._handle = loop.call_at(self._due, self._sample)

    def _sample(self) -> None:
        late = asyncio.get_running_loop().time() - self._due
        self._samples.append((time.monotonic_ns(), max(0, int(late * 1e9))))
        self._arm()
