"""The prober: a target in, a recording and its reading out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from random import Random

from app.clock import Clock
from app.errors import BandwatchError
from app.measurement.complaint import conceal, redact
from app.measurement.dialects import DROPPABLE, Dialect, dialect_for, request_body
from app.measurement.measure import measure
from app.measurement.model import Outcome, Reading
from app.measurement.recording import Failure, FailureKind, Recording
from app.probe.client import Clients
from app.probe.exchange import Call, exchange, new_recording
from app.probe.lag import LagMeter
from app.probe.prompts import prompt_of
from app.probe.tape import Tape
from app.probe.veil import veil, without
from app.targets.model import SecretRef, Target

INLINE_BYTES = 65_536
"""Bodies up to this size (200 chunks are 53 KB and 3 ms) are read in the loop, one a turn; larger ones in a thread."""
REFUSAL_STATUSES = frozenset({400, 404, 415, 422})


@dataclass(slots=True, kw_only=True)
class Prober:
    """Probes targets; made once, shared by all probes of a process.

    Args:
        clients: connections; its guard decides about addresses.
        resolve: the secret of a reference, when it is used.
        clock: the wall clock of `started_at`.
        rng: nonces.
    """

    clients: Clients
    resolve: Callable[[SecretRef], str]
    clock: Clock
    rng: Random
    lag: LagMeter = field(default_factory=LagMeter)
    lessons: dict[str, frozenset[str]] = field(default_factory=dict)
    """Provider -> parameters that it has refused."""
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    """One body is read per turn of the loop: streams that end together must not hold up those that run."""
    watch: Callable[[Tape], None] | None = None
    """Is shown the tape of each call as it begins."""

    async def probe(self, target: Target, *, scheduled_at: datetime | None = None) -> tuple[Recording, Reading]:  # noqa: ARG002 - others tell when it was due
        """One call, and once more without a parameter that the provider refuses. A paired recipe makes two calls that
        share their long beginning, and the second is the result.

        Raises:
            asyncio.CancelledError: when told to stop.
        """
        prefix = self.rng.getrandbits(64)
        recording, reading = await self._once(target, prefix)
        refused = self._refused(target, recording, reading)
        if refused is not None:
            self.lessons[target.provider.name] = self.lessons.get(target.provider.name, frozenset()) | {refused}
            recording, reading = await self._once(target, prefix)
        cold = reading.measurement
        if not target.recipe.paired or cold.outcome is not Outcome.OK:
            return recording, reading
        recording, reading = await self._once(target, prefix)
        return recording, replace(reading, measurement=replace(reading.measurement, cold_ttft_s=cold.ttft_s))

    async def _once(self, target: Target, prefix: int) -> tuple[Recording, Reading]:
        dialect = dialect_for(target.provider.base_url, name=target.provider.dialect)
        client = self.clients.client(target.connection)  # the first one takes 40 ms to make, which is no phase of a call
        recording = new_recording(
            base_url=target.provider.base_url,
            model=target.model,
            recipe=target.recipe.name,
            dialect=dialect.name,
            connection=target.connection,
            started_at=self.clock.now(),
            expected=target.recipe.output_tokens,
        )
        recording.request_notes = tuple(f"without_{name}" for name in sorted(self.lessons.get(target.provider.name, ())))
        began = self.lag.begin()
        key = prompt = ""
        try:
            key = "" if target.provider.api_key is None else self.resolve(target.provider.api_key)
            prompt = prompt_of(target.recipe, rng=self.rng, prefix=Random(prefix))
            call = self._call(target, dialect, key, prompt)
        except BandwatchError as error:
            recording.failure = Failure(kind=FailureKind.LOCAL, text=str(error))
            recording.marks.closed = recording.marks.started
        else:
            try:
                await exchange(client, call, recording, watch=self.watch)
            finally:
                recording.host = self.lag.end(began)
                began = 0
        finally:
            if began:
                recording.host = self.lag.end(began)
            if key:
                veil(recording, key)
        return recording, await self._read(recording, key, prompt)

    def _call(self, target: Target, dialect: Dialect, key: str, prompt: str) -> Call:
        provider = target.provider
        headers = {
            "accept": "text/event-stream",
            "accept-encoding": "identity",
            "user-agent": "bandwatch",
            **dict(provider.headers),
        }
        if key:
            headers |= {"api-key": key} if dialect.auth == "api-key" else {"authorization": f"Bearer {key}"}
        return Call(
            url=f"{provider.base_url.rstrip('/')}{dialect.path}",
            headers=headers,
            body=request_body(
                dialect,
                model=target.model,
                recipe=target.recipe,
                prompt=prompt,
                without=self.lessons.get(provider.name, frozenset()),
            ),
            connection=target.connection,
            deadlines=target.deadlines,
        )

    async def _read(self, recording: Recording, key: str, prompt: str) -> Reading:
        """Figures; no text in them holds the key or the prompt, even where the provider sends them back."""
        if recording.failure is not None:
            recording.failure = Failure(kind=recording.failure.kind, text=redact(recording.failure.text))
        if len(recording.tape.body) > INLINE_BYTES:
            reading = await asyncio.to_thread(measure, recording)
        else:
            async with self._turn:
                reading = measure(recording)
                await asyncio.sleep(0)
        text = reading.measurement.error_text
        if text:
            clean = conceal(redact(without(text, key) if key else text), prompt)
            reading = replace(reading, measurement=replace(reading.measurement, error_text=clean))
        return reading

    def _refused(self, target: Target, recording: Recording, reading: Reading) -> str | None:
        """The parameter that a refusal names, if it is one of those that can be left out and has not been yet."""
        if reading.measurement.outcome is not Outcome.BAD_REQUEST or recording.status not in REFUSAL_STATUSES:
            return None
        words = recording.tape.body[:4096].decode("utf-8", "replace").lower()
        known = self.lessons.get(target.provider.name, frozenset())
        return next((name for name in DROPPABLE if name in words and name not in known), None)
