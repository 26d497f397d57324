"""Probes as a person reads them: phases as a waterfall, figures with units, gaps as a sparkline, many in a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from statistics import median
from textwrap import wrap

import click

from app.cli.probing.report import Report, summary
from app.expectation.model import Expectation
from app.measurement.model import Measurement, Outcome, Reading
from app.measurement.recording import Recording
from app.units import format_duration
from app.verdict.model import Severity, Verdict

WIDTH = 40
BARS = "▁▂▃▄▅▆▇█"
EIGHTHS = "▏▎▍▌▋▊▉█"
SPARK = 48
COLOURS = {Severity.NONE: "green", Severity.WARNING: "yellow", Severity.CRITICAL: "red"}


def heading(report: Report) -> str:
    """What was probed, in one line."""
    target = report.target
    parts = (target.provider.base_url, target.model, target.recipe.name)
    return click.style("  ".join(parts), bold=True)


def one(recording: Recording, reading: Reading) -> Iterator[str]:
    """Everything about one probe."""
    m = reading.measurement
    yield f"  {outcome(m)}  {_circumstances(m)}"
    if m.error_text:
        yield f"  {m.error_text}"
    yield ""
    yield from waterfall(m)
    yield ""
    if m.ttft_s is not None or m.output_tokens is not None:
        yield from _figures(m, _gaps(reading))
        yield from _doubts(m, recording)
    yield from _server(m)


def outcome(m: Measurement) -> str:
    """How it ended, in colour."""
    if m.outcome is Outcome.OK:
        return click.style("ok", fg="green", bold=True)
    detail = "" if str(m.error_class) in {str(m.outcome), "none"} else f" ({m.error_class})"
    return click.style(f"{m.outcome}{detail}", fg="red", bold=True)


def _circumstances(m: Measurement) -> str:
    told = [f"HTTP {m.http_status}" if m.http_status is not None else "no answer"]
    if m.finish_reason:
        told.append(f"finished: {m.finish_reason}")
    told.append("fresh connection" if str(m.connection) == "cold" else "kept connection")
    stamps = {"kernel": "stamped by the kernel", "loop": "stamped by the event loop"}.get(str(m.stamp_source))
    if stamps:
        told.append(stamps)
    if m.served_by:
        told.append(f"served by {m.served_by}")
    return ", ".join(told)


def waterfall(m: Measurement) -> Iterator[str]:
    """The phases of the call, one after another on one scale."""
    p = m.phases
    wait = p.wait_s
    first = None if m.ttft_s is None or wait is None else max(0.0, m.ttft_s - wait)
    after = None if m.stream_end_s is None else max(0.0, m.stream_end_s - (m.ttft_s or wait or 0.0))
    before = [("dns", p.dns_s), ("connect", p.connect_s), ("tls", p.tls_s), ("send", p.send_s)]
    steps = [*before, ("first byte", wait), ("token", first), ("stream", after)]
    known = [(name, seconds) for name, seconds in steps if seconds is not None]
    total = sum(seconds for _, seconds in known)
    if total <= 0:
        return
    begun = 0.0
    for name, seconds in known:
        yield f"  {name:<11}{format_duration(seconds):>14}  {bar(begun / total, seconds / total)}"
        begun += seconds


def bar(start: float, share: float) -> str:
    """A bar over [start, start + share] of the width; the shortest is still seen."""
    cells = share * WIDTH
    whole = int(cells)
    part = int((cells - whole) * len(EIGHTHS))
    drawn = "█" * whole + (EIGHTHS[part] if part or not whole else "")
    return " " * min(int(start * WIDTH), WIDTH - 1) + click.style(drawn, fg="cyan")


def _figures(m: Measurement, gaps: Sequence[float]) -> Iterator[str]:
    yield _row("TTFT", _span(m.ttft_s), "request sent to the first output token", doubt=not m.reliable.ttft)
    if m.ttft_visible_s is not None and m.ttft_visible_s != m.ttft_s:
        yield _row("visible", _span(m.ttft_visible_s), "to the first token that a reader sees")
    tokens = "no token count" if m.output_tokens is None else f"{m.output_tokens} tokens, by {m.token_source}"
    yield _row("speed", _speed(m.decode_tps), f"while decoding; {tokens}", doubt=not m.reliable.tps)
    yield _row("per token", _span(m.tpot_s), "mean time between output tokens")
    yield _row("end to end", _span(m.e2e_s), f"{_speed(m.e2e_tps)} over all of it")
    if m.prompt_tokens is not None:
        cached = f", {m.cached_tokens} of them cached" if m.cached_tokens else ""
        hidden = f", {m.reasoning_tokens} output tokens of reasoning" if m.reasoning_tokens else ""
        yield _row("prompt", f"{m.prompt_tokens} tokens", f"{cached}{hidden}".strip(", "))
    if m.output_reads:
        each = "" if m.tokens_per_read is None else f"{m.tokens_per_read:.3g} tokens a read"
        yield _row("reads", str(m.output_reads), each)
    if m.gaps.p50_s is not None:
        spread = f"p95 {_span(m.gaps.p95_s)}, p99 {_span(m.gaps.p99_s)}, longest {_span(m.gaps.max_s)}"
        stalls = f", {m.gaps.stalls} stalls" if m.gaps.stalls else ""
        yield _row("gaps", _span(m.gaps.p50_s), f"median; {spread}{stalls}")
        if len(gaps) >= 4:
            yield _row("", "", sparkline(gaps))


def _row(name: str, figure: str, words: str = "", *, doubt: bool = False) -> str:
    mark = click.style("  (not reliable)", fg="yellow") if doubt and figure != "–" else ""
    return f"  {name:<11}{figure:>14}  {words}{mark}".rstrip()


def _server(m: Measurement) -> Iterator[str]:
    if m.server_timings:
        told = ", ".join(f"{name.removesuffix('_s')} {format_duration(value)}" for name, value in m.server_timings.items())
        yield _row("it says", "", told)


def _doubts(m: Measurement, recording: Recording) -> Iterator[str]:
    notes = [*m.notes, *(note for note in recording.request_notes if note not in m.notes)]
    if notes:
        yield _row("notes", "", ", ".join(notes))


def _gaps(reading: Reading) -> list[float]:
    stamps = reading.read_stamps_s
    return [later - earlier for earlier, later in pairwise(stamps)]


def sparkline(values: Sequence[float]) -> str:
    """The values in order, at most `SPARK` columns; a column shows the longest of its own."""
    size = -(-len(values) // SPARK)
    columns = [max(values[at : at + size]) for at in range(0, len(values), size)]
    top = max(columns)
    return "".join(BARS[min(int(value / top * len(BARS)), len(BARS) - 1)] if top > 0 else BARS[0] for value in columns)


def brief(number: int, count: int, m: Measurement) -> str:
    """One probe of many, in one line."""
    place = f"{number:>{len(str(count))}}/{count}"
    if m.outcome is Outcome.OK:
        tokens = "–" if m.output_tokens is None else f"{m.output_tokens} tokens"
        told = f"TTFT {_span(m.ttft_s):>8}   {_speed(m.decode_tps):>14}   {tokens}"
        doubts = f"   {', '.join(m.notes)}" if not (m.reliable.ttft and m.reliable.tps) else ""
        return f"  {place}  {outcome(m)}   {told}{doubts}"
    return f"  {place}  {outcome(m)}   {m.error_text or ''}"


def table(report: Report) -> Iterator[str]:
    """Medians and spread of many probes."""
    found = summary(report)
    kinds = {str(run.outcome): 0 for run in report.runs}
    for run in report.runs:
        kinds[str(run.outcome)] += 1
    yield f"  {len(report.runs)} probes: " + ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    yield ""
    yield f"  {'':<11}{'median':>14}{'least':>12}{'most':>12}{'n':>6}"
    for name, key in (("TTFT", "ttft_s"), ("per token", "tpot_s"), ("end to end", "e2e_s")):
        yield _spread(name, [_span(found[key][part]) for part in ("p50", "min", "max")], found[key]["n"])
    yield _spread("speed", [_speed(found["decode_tps"][part]) for part in ("p50", "min", "max")], found["decode_tps"]["n"])
    lag = [run.loop_lag_s for run in report.runs if run.loop_lag_s is not None]
    if lag and median(lag) > 0.005:
        yield ""
        yield f"  This machine was busy: its event loop was late by {_span(max(lag))}."


def _spread(name: str, figures: Iterable[str], n: int) -> str:
    middle, least, most = figures
    return f"  {name:<11}{middle:>14}{least.removesuffix(' tok/s'):>12}{most.removesuffix(' tok/s'):>12}{n:>6}"


def judged(report: Report, *, width: int) -> Iterator[str]:
    """What the deployment should reach, and what is to be said of it."""
    expectation, verdict = report.expectation, report.verdict
    if expectation is None or verdict is None:
        return
    yield ""
    if expectation.ceiling_tps is not None:
        yield _row("ceiling", _speed(expectation.ceiling_tps), "no honest deployment passes it without speculation")
    if expectation.expected_tps is not None:
        yield _row("expected", _speed(expectation.expected_tps), f"confidence {expectation.confidence}")
    elif expectation.expected_range_tps is not None:
        low, high = expectation.expected_range_tps
        yield _row("expected", "", f"{_speed(low)} to {_speed(high)}")
    yield ""
    yield from _verdict(verdict, expectation, report.runs, width)


def _verdict(verdict: Verdict, expectation: Expectation, runs: Sequence[Measurement], width: int) -> Iterator[str]:
    speeds = [run.decode_tps for run in runs if run.reliable.tps and run.decode_tps is not None]
    if "too_few_samples" in verdict.reasons and speeds and expectation.expected_tps:
        ratio = median(speeds) / expectation.expected_tps
        yield _row("so far", f"R {ratio:.2f}", "observed over expected; a few more probes (-n 6) give a verdict")
        return
    ratio_text = "" if verdict.ratio is None else f"  R {verdict.ratio:.2f}"
    yield "  " + click.style(f"{verdict.state}{ratio_text}", fg=COLOURS[verdict.severity], bold=True)
    yield from wrap(verdict.explanation, width, initial_indent="  ", subsequent_indent="  ")


def _span(seconds: float | None) -> str:
    return "–" if seconds is None else format_duration(seconds)


def _speed(tps: float | None) -> str:
    return "–" if tps is None else f"{tps:.4g} tok/s"
