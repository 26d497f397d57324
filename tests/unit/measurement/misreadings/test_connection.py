"""Connections, queues, limits: entries 63 to 68."""

from dataclasses import replace

import pytest

from app.measurement.measure import measure
from app.measurement.recording import HostHealth, Marks
from app.targets.load import load_config
from app.targets.model import Connection
from tests.support.recordings import MS, recording
from tests.support.scenarios import BASE


def marks(*, sent_ms: float, connect_ms: float = 0.0, dns_ms: float = 0.0) -> Marks:
    return Marks(
        started=0,
        dns_start=0,
        dns_end=int(dns_ms * MS),
        connected=int((dns_ms + connect_ms) * MS),
        request_sent=int(sent_ms * MS),
        headers=int((sent_ms + 40) * MS),
        closed=int((sent_ms + 680) * MS),
    )


def test_63_what_we_waited_before_the_request_was_written_is_no_ttft() -> None:
    queued = measure(recording(BASE, sent_ms=112.0)).measurement
    assert (queued.ttft_s, queued.presend_s, queued.tpot_s) == (0.2, 0.112, 0.02)


def test_64_a_late_loop_moves_no_kernel_stamp_and_spoils_the_others() -> None:
    late = recording(BASE)
    late.host = HostHealth(loop_lag_p99_s=0.1, loop_lag_max_s=0.2, in_flight=30)
    kept = measure(late).measurement
    assert (kept.ttft_s, kept.reliable.ttft, kept.reliable.tps, kept.loop_lag_s) == (0.2, True, True, 0.2)
    late.stamp_source = replace(late).stamp_source.LOOP
    spoiled = measure(late).measurement
    assert (spoiled.reliable.ttft, spoiled.reliable.tps, "contaminated" in spoiled.notes) == (False, False, True)


def test_65_a_fresh_connection_is_told_from_a_kept_one_and_its_phases_are_apart() -> None:
    cold = recording(BASE, sent_ms=55.0)
    cold.marks = marks(sent_ms=55.0, dns_ms=20.0, connect_ms=30.0)
    m = measure(cold).measurement
    assert (m.connection, m.phases.dns_s, m.phases.connect_s, m.phases.send_s) == ("cold", 0.02, 0.03, 0.005)
    assert (m.phases.wait_s, m.ttft_s) == (0.04, 0.2)
    cold.connection = Connection.WARM
    assert measure(cold).measurement.connection == "warm"


def test_66_a_slow_first_connect_is_in_its_phase_and_not_in_ttft() -> None:
    first = recording(BASE, sent_ms=905.0)
    first.marks = marks(sent_ms=905.0, dns_ms=400.0, connect_ms=500.0)
    m = measure(first).measurement
    assert (m.ttft_s, m.phases.connect_s, m.presend_s) == (0.2, 0.5, 0.905)


def test_67_the_round_trip_stands_beside_the_first_token() -> None:
    far = recording(BASE, sent_ms=151.0)
    far.marks = marks(sent_ms=151.0, connect_ms=150.0)
    m = measure(far).measurement
    assert (m.phases.connect_s, m.ttft_s) == (0.15, 0.2)


def test_68_each_limit_holds_for_the_figure_that_it_names_in_its_unit() -> None:
    config = load_config(
        "providers: {p: {base_url: 'https://p.example/v1'}}\n"
        "targets: [{name: t, provider: p, model: m, every: 60s, slo: {ttft_p95: 500ms, tps_p50: 300}}]\n"
    )
    slo = config.targets[0].slo
    assert slo is not None
    assert (slo.ttft_p95_s, slo.tps_p50, config.targets[0].every_s) == (0.5, 300.0, 60.0)
    with pytest.raises(Exception, match="tps_p50"):
        load_config(
            "providers: {p: {base_url: 'https://p.example/v1'}}\n"
            "targets: [{name: t, provider: p, model: m, every: 60s, slo: {tps_p50: 300ms}}]\n"
        )
