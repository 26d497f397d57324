"""From a snapshot to the bytes of a scrape. Pure work that takes a while: call it off the event loop."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from dataclasses import dataclass

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from app.metrics.service import process_families, service_families
from app.metrics.snapshot import Snapshot
from app.metrics.targets import target_families


@dataclass(frozen=True, slots=True, kw_only=True)
class Exposition:
    """The answer to a scrape."""

    body: bytes
    content_type: str
    gzipped: bool


class SnapshotCollector(Collector):
    """Gives the families of one snapshot: there is no state, so what is gone from it is gone from the scrape."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def collect(self) -> Iterator[Metric]:
        """All families, without timestamps: they would defeat Prometheus's staleness."""
        snapshot = self._snapshot
        yield from process_families(snapshot.process, database_up=snapshot.service is not None)
        if snapshot.service is not None:
            yield from service_families(snapshot.service, channels=snapshot.channels)
            yield from target_families(snapshot.watched)


def render(snapshot: Snapshot, *, accept: str = "", accept_encoding: str = "") -> Exposition:
    """The scrape's body in the format that the scraper asks for: OpenMetrics, or the text format.

    A registry of its own each time: no names can clash, and nothing is kept between scrapes.
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(SnapshotCollector(snapshot))
    encode, content_type = choose_encoder(accept)
    body = encode(registry)
    gzipped = "gzip" in accept_encoding.lower()
    return Exposition(
        body=gzip.compress(body, compresslevel=1) if gzipped else body, content_type=content_type, gzipped=gzipped
    )
