"""A scrape shows what is, in names that do not change: absent where nothing happened, zero where nothing was counted."""

import gzip
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text
from prometheus_client.samples import Sample

from app.expectation.model import Confidence
from app.measurement.model import ErrorClass, Gaps, Measurement, Outcome, Phases, Reliable, Run
from app.measurement.totals import Totals, advance_totals
from app.metrics.exposition import render
from app.metrics.snapshot import Build, Cell, Process, Service, Snapshot, Watched
from app.targets.model import Deployment, Provider, Recipe, Target
from app.verdict.model import Severity, State, Verdict

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
OPENMETRICS = "application/openmetrics-text; version=1.0.0"
CONTRACT = """
bandwatch_build_info{version,revision}
bandwatch_target_info{target,provider,model,hardware,quantization,recipe}
bandwatch_probe_runs_total{target,location,outcome}
bandwatch_probe_phase_seconds_bucket{target,location,phase,connection,le}
bandwatch_time_to_first_token_seconds_bucket{target,location,le}
bandwatch_time_per_output_token_seconds_bucket{target,location,le}
bandwatch_output_tokens_per_second_bucket{target,location,le}
bandwatch_probe_duration_seconds_bucket{target,location,le}
bandwatch_probe_max_gap_seconds{target,location}
bandwatch_probe_tokens_total{target,direction}
bandwatch_probe_cost_usd_total{target}
bandwatch_expected_tokens_per_second{target}
bandwatch_ceiling_tokens_per_second{target}
bandwatch_expectation_ratio{target,location}
bandwatch_ceiling_ratio{target,location}
bandwatch_verdict{target,location,state}
bandwatch_target_last_run_timestamp_seconds{target,location}
bandwatch_target_last_success_timestamp_seconds{target,location}
bandwatch_target_interval_seconds{target}
bandwatch_incidents_open{severity}
bandwatch_scheduler_ticks_total{result}
bandwatch_scheduler_lateness_seconds{}
bandwatch_scheduler_last_tick_timestamp_seconds{}
bandwatch_event_loop_lag_seconds{}
bandwatch_inflight_probes{}
bandwatch_queue_oldest_seconds{}
bandwatch_notifications_total{channel,result}
bandwatch_outbox_oldest_pending_seconds{}
bandwatch_dead_letters{}
bandwatch_database_pool_connections{state}
bandwatch_partitions_ahead{}
bandwatch_config_last_reload_successful{}
"""


def a_target(name: str = "groq/big", **changes: object) -> Target:
    made = Target(
        name=name,
        provider=Provider(name="groq", base_url="https://api.groq.com/openai/v1"),
        model="openai/gpt-oss-120b",
        every_s=60.0,
        recipe=Recipe(name="chat-short"),
        deployment=Deployment(hardware="groq-lpu-v1", quantization="mxfp4"),
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def a_run(outcome: Outcome = Outcome.OK, *, ttft_s: float = 0.2) -> Run:
    ok = outcome is Outcome.OK
    return Run(
        id="r",
        target="groq/big",
        location="default",
        due_at=NOW,
        started_at=NOW,
        finished_at=NOW,
        provider="groq",
        model="m",
        recipe="chat-short",
        cost_usd=0.001,
        measurement=Measurement(
            outcome=outcome,
            error_class=ErrorClass.NONE if ok else ErrorClass.SERVER_ERROR,
            phases=Phases(dns_s=0.01, connect_s=0.02, tls_s=0.03, send_s=0.001, wait_s=0.15),
            ttft_s=ttft_s if ok else None,
            decode_tps=500.0 if ok else None,
            tpot_s=0.002 if ok else None,
            total_s=1.0,
            gaps=Gaps(max_s=0.05),
            prompt_tokens=60 if ok else None,
            output_tokens=128 if ok else None,
            reliable=Reliable(ttft=ok, tps=ok),
        ),
    )


VERDICT = Verdict(
    target="groq/big",
    location="default",
    state=State.BELOW_EXPECTATION,
    severity=Severity.CRITICAL,
    since=NOW,
    checked_at=NOW,
    observed=100.0,
    expected=500.0,
    ceiling=900.0,
    ratio=0.2,
    ceiling_ratio=0.111,
    confidence=Confidence.HIGH,
    samples=9,
)


def a_snapshot(*watched: Watched) -> Snapshot:
    return Snapshot(
        process=Process(build=Build(version="0.1.0", revision="abc"), loop_lag_s=0.002, pool={"in_use": 1, "idle": 3}),
        service=Service(
            incidents_open={Severity.CRITICAL: 1},
            ticks={"run": 10},
            notifications={("ops", "delivered"): 3},
            last_tick_at=NOW,
            lateness_s=0.1,
            in_flight=2,
            queue_oldest_s=0.0,
            outbox_oldest_s=5.0,
            dead_letters=1,
            partitions_ahead=7,
        ),
        watched=watched,
        channels=("ops", "am"),
    )


def a_watched(target: Target | None = None) -> Watched:
    totals = advance_totals(advance_totals(Totals(), a_run()), a_run(Outcome.PROVIDER_ERROR))
    return Watched(
        target=target or a_target(),
        cells={"default": Cell(totals=totals, verdict=VERDICT)},
        expected_tps=500.0,
        ceiling_tps=900.0,
    )


def samples(snapshot: Snapshot) -> list[Sample]:
    text = render(snapshot).body.decode()
    return [sample for family in parse_text(text) for sample in family.samples]


def of(found: list[Sample], name: str, **labels: str) -> list[float]:
    return [s.value for s in found if s.name == name and labels.items() <= s.labels.items()]


def test_every_name_of_the_contract_is_there_with_exactly_its_labels() -> None:
    found = samples(a_snapshot(a_watched()))
    shapes = {f"{s.name}{{{','.join(sorted(s.labels))}}}" for s in found}
    for line in CONTRACT.split():
        name, labels = line.rstrip("}").split("{")
        assert f"{name}{{{','.join(sorted(filter(None, labels.split(','))))}}}" in shapes, line


def test_what_did_not_happen_is_absent_and_what_was_not_counted_is_zero() -> None:
    found = samples(a_snapshot(Watched(target=a_target())))
    for name in (
        "bandwatch_probe_max_gap_seconds",
        "bandwatch_expectation_ratio",
        "bandwatch_ceiling_ratio",
        "bandwatch_expected_tokens_per_second",
        "bandwatch_ceiling_tokens_per_second",
        "bandwatch_target_last_run_timestamp_seconds",
        "bandwatch_target_last_success_timestamp_seconds",
    ):
        assert of(found, name) == []
    assert of(found, "bandwatch_probe_runs_total") == [0.0] * len(Outcome)
    assert of(found, "bandwatch_time_to_first_token_seconds_count", target="groq/big") == [0.0]
    assert of(found, "bandwatch_probe_phase_seconds_count", connection="cold") == [0.0] * 5
    assert of(found, "bandwatch_probe_phase_seconds_count", connection="warm") == []
    assert min(s.value for s in found) >= 0.0


def test_each_location_has_a_series_before_its_first_run() -> None:
    found = samples(a_snapshot(Watched(target=a_target(locations=("fra", "iad")))))
    assert {s.labels["location"] for s in found if s.name == "bandwatch_probe_runs_total"} == {"fra", "iad"}
    assert of(found, "bandwatch_scheduler_ticks_total") == [10.0, 0, 0, 0, 0, 0]
    assert of(found, "bandwatch_notifications_total", channel="am") == [0.0, 0.0, 0.0]
    assert of(found, "bandwatch_incidents_open", severity="warning") == [0.0]


def test_exactly_one_state_of_a_verdict_is_one_and_no_verdict_is_unknown() -> None:
    found = samples(a_snapshot(a_watched()))
    states = {s.labels["state"]: s.value for s in found if s.name == "bandwatch_verdict"}
    assert states == {state.value: float(state is State.BELOW_EXPECTATION) for state in State}
    nothing = samples(a_snapshot(Watched(target=a_target())))
    assert of(nothing, "bandwatch_verdict", state="unknown") == [1.0]
    assert of(nothing, "bandwatch_verdict", state="ok") == [0.0]


def test_series_of_a_deleted_renamed_or_paused_target_are_gone_at_the_next_scrape() -> None:
    before = samples(a_snapshot(a_watched()))
    assert any(s.labels.get("target") == "groq/big" for s in before)
    for after in (
        a_snapshot(),
        a_snapshot(Watched(target=a_target("groq/renamed"))),
        a_snapshot(a_watched(a_target(paused=True))),
    ):
        assert not any(s.labels.get("target") == "groq/big" for s in samples(after))


def test_histograms_count_each_value_in_all_buckets_that_reach_it() -> None:
    found = samples(a_snapshot(a_watched()))
    buckets = {s.labels["le"]: s.value for s in found if s.name == "bandwatch_time_to_first_token_seconds_bucket"}
    assert buckets["0.1"] == 0.0
    assert buckets["0.2"] == 1.0  # a value on an edge belongs below it
    assert buckets["+Inf"] == 1.0
    assert of(found, "bandwatch_time_to_first_token_seconds_sum") == [0.2]
    assert of(found, "bandwatch_probe_duration_seconds_count") == [2.0]


def test_without_the_database_a_scrape_still_answers_and_shows_nothing_stale() -> None:
    found = samples(replace(a_snapshot(a_watched()), service=None))
    assert of(found, "bandwatch_database_up") == [0.0]
    assert of(found, "bandwatch_build_info", version="0.1.0", revision="abc") == [1.0]
    assert not any("target" in s.labels for s in found)
    assert of(found, "bandwatch_dead_letters") == []


def test_both_formats_parse_and_no_sample_has_a_timestamp() -> None:
    snapshot = a_snapshot(a_watched())
    text = render(snapshot)
    opened = render(snapshot, accept=OPENMETRICS)
    assert text.content_type.startswith("text/plain")
    assert opened.content_type.startswith("application/openmetrics-text")
    assert opened.body.endswith(b"# EOF\n")
    families = [*parse_text(text.body.decode()), *parse_openmetrics(opened.body.decode())]
    assert all(sample.timestamp is None for family in families for sample in family.samples)
    assert b"_created" not in text.body + opened.body


def test_a_scraper_that_takes_gzip_gets_the_same_bytes_compressed() -> None:
    snapshot = a_snapshot(a_watched())
    packed = render(snapshot, accept_encoding="gzip, deflate")
    assert packed.gzipped
    assert gzip.decompress(packed.body) == render(snapshot).body


def test_a_label_with_quotes_and_line_feeds_does_not_break_the_format() -> None:
    found = samples(a_snapshot(Watched(target=a_target(model='a"b\\c\nd'))))
    assert [s.labels["model"] for s in found if s.name == "bandwatch_target_info"] == ['a"b\\c\nd']


def test_the_number_of_series_is_bounded_by_targets_and_locations() -> None:
    """Series of a (target, location) come from closed sets, so their number does not depend on what happens."""
    targets = [a_watched(a_target(f"p/{n}", locations=("a", "b", "c"))) for n in range(20)]
    count = len(samples(a_snapshot(*targets)))
    assert count < 20 * 3 * 200 + 100


def documented() -> Iterator[str]:
    text = (Path(__file__).parents[3] / "docs" / "metrics.md").read_text()
    yield from re.findall(r"`(bandwatch_[a-z_]+)", text)


def test_every_family_is_documented_and_every_documented_family_exists() -> None:
    families = {family.name for family in parse_text(render(a_snapshot(a_watched())).body.decode())}
    families = {name + "_total" if name + "_total" in set(documented()) else name for name in families}
    assert families == set(documented())


@pytest.mark.prometheus
def test_promtool_finds_nothing_to_say() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed")
    body = render(a_snapshot(a_watched())).body
    done = subprocess.run([promtool, "check", "metrics"], input=body, capture_output=True, check=False)
    complaints = [line for line in done.stderr.decode().splitlines() if line.strip()]
    assert complaints == []
