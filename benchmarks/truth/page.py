"""The page, the picture and the rows of the truth benchmark."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

NAMES = {
    "kernel": "bandwatch, kernel stamps",
    "loop": "bandwatch, loop stamps",
    "lines": "httpx2 `aiter_lines` + json",
    "openai": "openai SDK",
}
COLOURS = {"kernel": "#0b7285", "loop": "#74b816", "lines": "#e8590c", "openai": "#862e9c"}
HEAD = """# The truth benchmark

    make bench-truth

A scripted server in a process and on a core of its own writes 100 chunks/s a stream and puts the instant of each write into
the chunk, and the instant at which the request arrived. Each way of reading runs in a fresh process on another core, on uvloop,
against the same server; all streams of a row start at once. *Lateness* is stamp minus write; *TTFT error* is the way's TTFT
minus (first write - arrival of the request); *TPS error* is a share. CPU is the reading process's, everything included: call,
stamps, parsing, figures. p99 needs 100 samples; below, the column holds the largest. *Fused* is the share of chunks that came
in one read with a later one and bear its stamp (our own rows only); such reads are flagged.

"""


def quantile(values: Sequence[float], share: float) -> float:
    """By nearest rank; the largest where there are too few samples."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, math.ceil(share * len(ordered)) - 1)] if ordered else math.nan


@dataclass(frozen=True, kw_only=True)
class Row:
    """Milliseconds, microseconds of CPU, shares."""

    way: str
    streams: int
    tls: bool
    blocked: bool
    size: int
    probes: int
    failed: int
    chunks: int
    fused: float
    late: tuple[float, float, float]
    ttft: tuple[float, float]
    tps: float
    cpu_us: float

    @classmethod
    def of(cls, found: dict[str, Any], *, way: str, streams: int, tls: bool, blocked: bool, size: int) -> Row:
        wrong = [abs(each) for each in found["ttft"]]
        return cls(
            way=way,
            streams=streams,
            tls=tls,
            blocked=blocked,
            size=size,
            probes=len(wrong),
            failed=found["failed"],
            chunks=found["chunks"],
            fused=found["fused"] / max(1, found["chunks"]),
            late=tuple(quantile(found["lateness"], share) for share in (0.5, 0.95, 0.99)),  # type: ignore[arg-type]
            ttft=(quantile(wrong, 0.5), quantile(wrong, 0.99)),
            tps=quantile(found["tps"], 0.99),
            cpu_us=found["cpu_us"] / max(1, found["chunks"]),
        )

    def json(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def setting(self) -> str:
        return (", TLS" if self.tls else "") + (", loop blocked 10 ms of 60" if self.blocked else "")


def page(rows: Sequence[Row], *, cores: int, load: tuple[float, float]) -> str:
    out = [HEAD, f"Measured on {cores} cores; the machine's load average during the run was {load[0]:.1f} to {load[1]:.1f}. "]
    if load[1] > cores:
        out.append("Other programs held both cores, so waiting for a core is in all figures that are taken in user space.")
    out.append("\n\n![Lateness of stamps](truth.svg)\n\n")
    out.append("| way | streams | chunks a stream | probes | chunks | lateness p50 / p95 / p99, ms | fused | ")
    out.append("TTFT error p50 / p99, ms | TPS error p99 | CPU a chunk, us |\n| --- |" + " --- |" * 9 + "\n")
    for row in rows:
        late, ttft = " / ".join(f"{each:.3f}" for each in row.late), " / ".join(f"{each:.3f}" for each in row.ttft)
        ours = f"{row.fused:.1%}" if row.way in {"kernel", "loop"} else ""
        out.append(f"| {NAMES[row.way]}{row.setting} | {row.streams} | {row.size} | {row.probes} | {row.chunks} | {late} | ")
        out.append(f"{ours} | {ttft} | {row.tps:.3%} | {row.cpu_us:.0f} |\n")
    return "".join(out) + "\n" + "\n".join(f"- {line}" for line in claims(rows)) + "\n"


def claims(rows: Sequence[Row]) -> list[str]:
    """What was to be shown, each with the number that was measured."""
    out = []

    def say(text: str, holds: Callable[[Row], bool], figure: Callable[[Row], str], **which: object) -> None:
        asked = [row for row in rows if all(getattr(row, name) == value for name, value in which.items())]
        out.extend(f"{'met' if holds(row) else '**not met**'}: {text}: {figure(row)}" for row in asked)

    quiet = {"way": "kernel", "tls": False, "blocked": False}
    say(
        "N = 1, TTFT error p99 under 1 ms",
        lambda r: r.ttft[1] < 1,
        lambda r: f"{r.ttft[1]:.3f} ms",
        **quiet,
        streams=1,
        size=16,
    )
    say("N = 1, TPS error under 0.5 %", lambda r: r.tps < 0.005, lambda r: f"{r.tps:.3%}", **quiet, streams=1, size=200)
    for tls in (False, True):
        setting = {"way": "kernel", "streams": 50, "blocked": False, "tls": tls}
        mine = next((r for r in rows if r.way == "kernel" and r.streams == 50 and r.tls == tls and not r.blocked), None)
        theirs = next((r for r in rows if r.way == "lines" and r.streams == 50 and r.tls == tls and not r.blocked), None)
        name = "N = 50" + (", TLS" if tls else "")
        say(f"{name}, lateness p50 at most 0.02 ms", lambda r: r.late[0] <= 0.02, lambda r: f"{r.late[0]:.3f} ms", **setting)
        say(f"{name}, lateness p99 at most 0.2 ms", lambda r: r.late[2] <= 0.2, lambda r: f"{r.late[2]:.3f} ms", **setting)
        if mine and theirs:
            out.append(ratio(f"{name}, lateness p99 against the plain way's, at most 0.1", mine.late[2] / theirs.late[2], 0.1))
            out.append(ratio(f"{name}, CPU a chunk against the plain way's, at most 0.5", mine.cpu_us / theirs.cpu_us, 0.5))
        most, cpu = (13, "13 ms, TLS") if tls else (12, "12 ms")
        text = f"N = 30, CPU of a stream of 200 chunks at most {cpu}"
        which = {"way": "kernel", "streams": 30, "tls": tls}
        say(text, lambda r, most=most: r.cpu_us * 0.2 <= most, lambda r: f"{r.cpu_us * 0.2:.1f} ms", **which)
    say(
        "N = 50, loop blocked, lateness p50 at most 0.02 ms",
        lambda r: r.late[0] <= 0.02,
        lambda r: f"{r.late[0]:.3f} ms",
        way="kernel",
        blocked=True,
    )
    say(
        "N = 50, loop blocked, lateness p95 at most 0.2 ms",
        lambda r: r.late[1] <= 0.2,
        lambda r: f"{r.late[1]:.3f} ms",
        way="kernel",
        blocked=True,
    )
    say("N = 200, TTFT error p99 under 1 ms", lambda r: r.ttft[1] < 1, lambda r: f"{r.ttft[1]:.3f} ms", **quiet, streams=200)
    say(
        "N = 200, the plain way's is over 100 ms",
        lambda r: r.ttft[1] > 100,
        lambda r: f"{r.ttft[1]:.0f} ms",
        way="lines",
        streams=200,
    )
    return out


def ratio(text: str, value: float, most: float) -> str:
    return f"{'met' if value <= most else '**not met**'}: {text}: {value:.3f}"


def picture(rows: Sequence[Row]) -> str:
    """Lateness p50 (solid) and p99 (dashed) over the number of streams, both axes logarithmic."""
    plain = [row for row in rows if not row.tls and not row.blocked and row.size == 200]
    low, high = -3.0, 3.0

    def x(streams: float) -> float:
        return 70 + 480 * math.log10(streams) / math.log10(200)

    def y(ms: float) -> float:
        return 330 - 300 * (min(high, max(low, math.log10(max(ms, 1e-9)))) - low) / (high - low)

    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 800 380" font-family="sans-serif" font-size="12">']
    out.append('<rect width="800" height="380" fill="#fff"/>')
    for power in range(int(low), int(high) + 1):
        out.append(f'<line x1="70" x2="550" y1="{y(10**power):.1f}" y2="{y(10**power):.1f}" stroke="#ddd"/>')
        out.append(f'<text x="62" y="{y(10**power) + 4:.1f}" text-anchor="end">{10.0**power:g}</text>')
    levels = sorted({row.streams for row in plain})
    out.extend(f'<text x="{x(each):.1f}" y="350" text-anchor="middle">{each}</text>' for each in levels)
    out.append('<text x="310" y="372" text-anchor="middle">streams at once, 100 chunks/s each</text>')
    out.append('<text x="70" y="20">lateness of stamps, ms: p50 solid, p99 dashed</text>')
    for number, way in enumerate(NAMES):
        mine = sorted((row for row in plain if row.way == way), key=lambda row: row.streams)
        for which, dash in ((0, ""), (2, ' stroke-dasharray="5 4"')):
            points = " ".join(f"{x(row.streams):.1f},{y(row.late[which]):.1f}" for row in mine)
            out.append(f'<polyline points="{points}" fill="none" stroke="{COLOURS[way]}" stroke-width="2"{dash}/>')
        if mine:
            out.append(f'<text x="565" y="{60 + 20 * number}" fill="{COLOURS[way]}">{NAMES[way].replace("`", "")}</text>')
    return "\n".join([*out, "</svg>"]) + "\n"
