"""Metric families of the service itself: its schedule, queue, outbox, database and build."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from app.metrics.snapshot import NOTIFICATION_RESULTS, TICK_RESULTS, Process, Service
from app.verdict.model import Severity


def process_families(process: Process, *, database_up: bool) -> Iterator[Metric]:
    """What is known without the database."""
    build = GaugeMetricFamily("bandwatch_build_info", "Which program this is; always 1.", labels=("version", "revision"))
    build.add_metric((process.build.version, process.build.revision), 1.0)
    yield build
    yield GaugeMetricFamily("bandwatch_database_up", "1 when the database answered this scrape.", value=float(database_up))
    pool = GaugeMetricFamily("bandwatch_database_pool_connections", "Database connections of this process.", labels=("state",))
    for state, count in sorted(process.pool.items()):
        pool.add_metric((state,), count)
    yield pool
    yield GaugeMetricFamily(
        "bandwatch_config_last_reload_successful",
        "1 when the last attempt to load the configuration succeeded.",
        value=float(process.config_loaded),
    )
    yield from _known({"bandwatch_event_loop_lag_seconds": ("The worst recent lag of an event loop.", process.loop_lag_s)})


def service_families(service: Service, *, channels: tuple[str, ...]) -> Iterator[Metric]:
    """What all processes share, as the database has it."""
    incidents = GaugeMetricFamily("bandwatch_incidents_open", "Open incidents.", labels=("severity",))
    for severity in (Severity.WARNING, Severity.CRITICAL):
        incidents.add_metric((severity,), service.incidents_open.get(severity, 0))
    yield incidents
    ticks = CounterMetricFamily("bandwatch_scheduler_ticks", "Due ticks by what became of them.", labels=("result",))
    for result in TICK_RESULTS:
        ticks.add_metric((result,), service.ticks.get(result, 0))
    yield ticks
    notifications = CounterMetricFamily(
        "bandwatch_notifications", "Attempts to deliver, by what came of them.", labels=("channel", "result")
    )
    for channel in channels:
        for result in NOTIFICATION_RESULTS:
            notifications.add_metric((channel, result), service.notifications.get((channel, result), 0))
    yield notifications
    yield from _known(
        {
            "bandwatch_scheduler_lateness_seconds": ("The worst lateness of the last starts.", service.lateness_s),
            "bandwatch_scheduler_last_tick_timestamp_seconds": (
                "When the schedule was last walked, Unix time.",
                None if service.last_tick_at is None else service.last_tick_at.timestamp(),
            ),
            "bandwatch_inflight_probes": ("Probes that run now.", service.in_flight),
            "bandwatch_queue_oldest_seconds": ("Age of the oldest due job that waits.", service.queue_oldest_s),
            "bandwatch_outbox_oldest_pending_seconds": (
                "Age of the oldest announcement that is not delivered.",
                service.outbox_oldest_s,
            ),
            "bandwatch_dead_letters": ("Announcements that were given up.", service.dead_letters),
            "bandwatch_partitions_ahead": ("Days ahead that have a partition.", service.partitions_ahead),
        }
    )


def _known(gauges: Mapping[str, tuple[str, float | None]]) -> Iterator[Metric]:
    """A gauge for each figure that exists; a family without a sample for the others."""
    for name, (text, value) in gauges.items():
        yield GaugeMetricFamily(name, text, value=value)
