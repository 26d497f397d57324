"""What is claimed, as checks with a bound each: all must hold, or `make validate` fails."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from app.catalog.load import Catalog
from app.expectation.constants import AMBER, RED, TUNED
from app.expectation.expect import Workload, expect, machine_of
from app.expectation.laws import ceiling_tps, ttft_floor_s, ttft_s
from app.expectation.speculation import Speculation
from app.targets.model import Deployment
from benchmarks.calibration.fits import HeldOut, hold_out, quantile
from benchmarks.calibration.rows import DATA, Judged, column, healthy, load

SPILL_LINK = 32e9
"""Bytes/s between host memory and device: PCIe 4 x16 one way, the peak, which is kind to the spilled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One claim: what was found, and what it must be."""

    claim: str
    found: str
    bound: str
    holds: bool


@dataclass(frozen=True)
class Evidence:
    """Everything that the claims are computed from."""

    catalog: Catalog
    rows: Sequence[Judged] = field(default_factory=tuple)

    @classmethod
    def read(cls, catalog: Catalog) -> Evidence:
        return cls(catalog=catalog, rows=load(catalog))

    @cached_property
    def bytes_rule(self) -> list[Judged]:
        """Rows with known hardware where the byte ceiling rules."""
        return [row for row in self.rows if row.machine is not None and not row.machine.hardware.by_layers]

    @cached_property
    def healthy(self) -> list[Judged]:
        return [row for row in self.bytes_rule if healthy(row)]

    @cached_property
    def plain(self) -> list[Judged]:
        """One stream, no speculation; healthy or not, whoever measured it."""
        return [row for row in self.bytes_rule if row.raw["batch"] == "1" and row.raw["speculative"] == "no"]

    @cached_property
    def speculative(self) -> list[Judged]:
        return [row for row in self.rows if row.machine is not None and row.raw["speculative"] == "yes"]

    @cached_property
    def impossible(self) -> list[Judged]:
        """Above the ceiling of what is declared, without speculation declared; shared steps are estimates and not asked."""
        return [
            row for row in self.bytes_rule if row.raw["batch"] == "1" and row.raw["speculative"] != "yes" and row.of_ceiling > 1
        ]

    @cached_property
    def dense_single(self) -> list[Judged]:
        return [row for row in self.healthy if row.shape == "dense, one device"]

    @cached_property
    def held_out(self) -> tuple[HeldOut, ...]:
        return (
            hold_out(self.dense_single, by="device", key=lambda row: row.raw["hardware"]),
            hold_out(self.dense_single, by="stack", key=lambda row: row.stack),
            hold_out(self.dense_single, by="model", key=lambda row: row.raw["model_id"]),
        )

    def share_below(self, limit: float) -> float:
        return sum(row.ratio < limit for row in self.healthy) / len(self.healthy)


def checks(evidence: Evidence) -> Iterator[Check]:
    """Every claim, in the order of the issue."""
    yield from _ceiling(evidence)
    yield _examples(evidence.catalog)
    yield from _false_flags(evidence)
    yield from _spills(evidence)
    yield from _speculation(evidence)
    yield from _impossible(evidence)
    yield from _held_out(evidence)
    yield from _prefill(evidence.catalog)


def upper_bound(hits: int, n: int) -> float:
    """The 95 % one-sided upper limit of a share (Clopper and Pearson 1934), by bisection."""
    low, high = hits / n, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        below = sum(math.comb(n, k) * middle**k * (1 - middle) ** (n - k) for k in range(hits + 1))
        low, high = (middle, high) if below > 0.05 else (low, middle)
    return high


def _ceiling(evidence: Evidence) -> Iterator[Check]:
    above = [row for row in evidence.plain if row.of_ceiling > 1]
    most = max(row.of_ceiling for row in evidence.plain)
    yield Check(
        claim="single-stream rows without speculation above the ceiling",
        found=f"{len(above)} of {len(evidence.plain)}; the highest reaches {most:.2f} of it",
        bound="none",
        holds=not above,
    )


def _examples(catalog: Catalog) -> Check:
    with (DATA / "expected_examples.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    worst = 0.0
    for row in rows:
        found = expect(
            Deployment(
                model_spec=row["model_id"],
                hardware=row["hardware"],
                devices=int(row["tp"]),
                quantization=row["quant"],
                batch=int(row["batch"]),
            ),
            catalog=catalog,
            workload=Workload(context_tokens=int(row["context"])),
        )
        pairs = (
            (found.ceiling_tps, "ceiling_tps_per_stream"),
            (found.expected_tps, "expected_tps_per_stream"),
            ((found.weights_bytes or 0) / 1e9, "weights_GB_total"),
            (((found.weights_bytes_per_token or 0) + (found.kv_bytes_per_token or 0)) * found.batch / 1e9, "GB_per_step"),
        )
        worst = max(worst, *(abs((value or 0) / float(row[name]) - 1) for value, name in pairs))
    return Check(
        claim="worked examples met (ceiling, expected, bytes per step, resident weights)",
        found=f"{len(rows)}, the furthest off by {worst:.2%}",
        bound="all within 1 %",
        holds=worst < 0.01 and len(rows) > 0,
    )


def _false_flags(evidence: Evidence) -> Iterator[Check]:
    wrong = [line for line, said, rule in column(evidence.rows) if said and (said == "yes") != rule]
    yield Check(
        claim="rows whose `healthy` column is not what the rule says",
        found=f"{len(wrong)} of {len(evidence.rows)}",
        bound="none",
        holds=not wrong,
    )
    n = len(evidence.healthy)
    for name, limit, most in (
        (f"false red flags on healthy rows (R < {RED:g})", RED, 0.01),
        ("healthy rows below half of expected", 0.5, 0.05),
        (f"false flags of any colour (R < {AMBER:g})", AMBER, 0.12),
    ):
        share = evidence.share_below(limit)
        hits = round(share * n)
        yield Check(
            claim=name,
            found=f"{hits} of {n} ({share:.1%}; 95 % sure to be under {upper_bound(hits, n):.1%})",
            bound=f"at most {most:.0%}",
            holds=share <= most,
        )
    fast = sum(row.ratio > TUNED for row in evidence.healthy)
    yield Check(
        claim=f"healthy rows called tuned or speculative (R > {TUNED:g})",
        found=f"{fast} of {n} ({fast / n:.1%})",
        bound="at most 6 %",
        holds=fast / n <= 0.06,
    )


def spilled_ratio(row: Judged, share: float) -> float:
    """R of a row if this share of its bytes came over the host link."""
    time_s = 1 / row.measured + share * row.known.step / SPILL_LINK
    return row.ratio / (row.measured * time_s)


def _spills(evidence: Evidence) -> Iterator[Check]:
    rows = [row for row in evidence.bytes_rule if row.raw["batch"] == "1" and row.raw["speculative"] != "yes"]
    spilt = [row for row in rows if "spill" in row.raw["flag"].lower() or (row.expectation and _over(row))]
    caught = [row for row in spilt if row.ratio < AMBER or (row.expectation is not None and row.expectation.fits is False)]
    yield Check(
        claim="rows whose weights spill to host memory, flagged (R or memory)",
        found=f"{len(caught)} of {len(spilt)} in this file",
        bound="all",
        holds=len(caught) == len(spilt),
    )
    cards = [row for row in evidence.healthy if row.known.hardware.kind != "soc" and row.known.lanes == 1]
    for share, most in ((0.10, 0.95), (0.20, 0.99)):
        red = sum(spilled_ratio(row, share) < RED for row in cards) / len(cards)
        amber = sum(spilled_ratio(row, share) < AMBER for row in cards) / len(cards)
        yield Check(
            claim=f"healthy rows on cards, with {share:.0%} of their bytes moved to the host by arithmetic, flagged",
            found=f"{amber:.0%} of {len(cards)} ({red:.0%} red)",
            bound=f"at least {most:.0%}",
            holds=amber >= most,
        )


def _over(row: Judged) -> bool:
    found = row.expectation
    memory = row.known.devices * row.known.hardware.memory_bytes * 1024**3 / 1e9
    return found is not None and found.weights_bytes is not None and found.weights_bytes + row.known.cache > memory


def _speculation(evidence: Evidence) -> Iterator[Check]:
    rows = evidence.speculative
    found = sum(row.ratio > TUNED or row.of_ceiling > 1 for row in rows)
    yield Check(
        claim=f"rows with declared speculation above R {TUNED:g} or the ceiling",
        found=f"{found} of {len(rows)} ({found / len(rows):.0%})",
        bound="at least 60 %",
        holds=found / len(rows) >= 0.6,
    )
    worst = max((fit.rms for fit in leviathan()), default=1.0)
    yield Check(
        claim="sweeps over the draft length described by Leviathan's formula",
        found=f"{len(leviathan())} sweeps, rms of the log speed-up at most {worst:.3f}",
        bound="at most 0.06",
        holds=worst <= 0.06,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Leviathan:
    """Acceptance on code and on prose, draft cost, and what is left."""

    hardware: str
    code: float
    prose: float
    cost: float
    rms: float
    n: int


def leviathan() -> tuple[Leviathan, ...]:
    """Each sweep with three draft lengths or more, fitted by search on a grid of hundredths (cost: of 5 thousandths)."""
    sweeps: dict[str, list[tuple[int, float, float]]] = {}
    with (DATA / "spec_sweeps.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if int(row["n_draft"]) > 0:
                name = row["hardware"] + (" (b)" if "per-prompt" in row["notes"] and "5090" in row["hardware"] else "")
                sweeps.setdefault(name, []).append(
                    (int(row["n_draft"]), float(row["speedup_code"]), float(row["speedup_prose"]))
                )
    return tuple(_fit_sweep(name, points) for name, points in sweeps.items() if len(points) >= 3)


def _fit_sweep(name: str, points: list[tuple[int, float, float]]) -> Leviathan:
    def best(which: int, cost: float) -> tuple[float, float]:
        return min(
            (
                sum(
                    math.log(point[which] / Speculation(alpha=a / 100, gamma=point[0], cost=cost).speedup) ** 2
                    for point in points
                ),
                a / 100,
            )
            for a in range(40, 100)
        )

    def whole(cost: float) -> tuple[float, float, float, float]:
        (code_error, code), (prose_error, prose) = best(1, cost), best(2, cost)
        return code_error + prose_error, code, prose, cost

    error, code, prose, cost = min(whole(step / 200) for step in range(10, 51))
    return Leviathan(hardware=name, code=code, prose=prose, cost=cost, rms=math.sqrt(error / (2 * len(points))), n=len(points))


def _impossible(evidence: Evidence) -> Iterator[Check]:
    known = {row.line for row in evidence.bytes_rule if row.raw["flag"].startswith("IMPOSSIBLE")}
    found = {row.line for row in evidence.impossible}
    yield Check(
        claim="rows that are impossible as declared, found impossible",
        found=f"{len(known & found)} of {len(known)}, and {len(found - known)} others",
        bound="all, and no others",
        holds=known == found,
    )
    claims = read_claims(evidence.catalog)
    right = sum(found for _, found in claims)
    yield Check(
        claim="well-known impossible claims (data/claims.csv), found impossible",
        found=f"{right} of {len(claims)}",
        bound="all",
        holds=right == len(claims),
    )


def read_claims(catalog: Catalog) -> list[tuple[dict[str, str], bool]]:
    """Each claim, and whether the calculator finds it impossible in the way that it is."""
    with (DATA / "claims.csv").open(encoding="utf-8", newline="") as file:
        return [(row, _refuted(row, catalog)) for row in csv.DictReader(file)]


def _refuted(row: dict[str, str], catalog: Catalog) -> bool:
    deployment = Deployment(
        model_spec=row["model_spec"],
        hardware=row["hardware"],
        devices=int(row["devices"]),
        quantization=row["quantization"],
    )
    work = Workload(context_tokens=int(row["context_tokens"]))
    found = expect(deployment, catalog=catalog, workload=work)
    match row["finding"]:
        case "does_not_fit":
            return found.fits is False
        case "above_ceiling":
            return found.ceiling_tps is not None and float(row["tps"]) > found.ceiling_tps
        case _:
            model, hardware = catalog.model(row["model_spec"]), catalog.hardware_of(row["hardware"])
            return float(row["tps"]) > ceiling_tps(machine_of(deployment, model, hardware, catalog, work)[0])


def _held_out(evidence: Evidence) -> Iterator[Check]:
    for held in evidence.held_out:
        yield Check(
            claim=f"leave one {held.by} out ({held.groups}): median error of dense rows on one device",
            found=f"{held.error:.3f} (p90 {held.error_p90:.2f}), {len(held.ratios)} rows; "
            f"{held.share_below(RED):.1%} red, {held.share_below(0.5):.1%} below half",
            bound="at most 0.20, and 1 % red",
            holds=held.error <= 0.20 and held.share_below(RED) <= 0.01,
        )
    errors = [abs(math.log(row.ratio)) for row in evidence.dense_single]
    yield Check(
        claim="the same rows by the constants as shipped, which no row was fitted for",
        found=f"{quantile(errors, 0.5):.3f} (p90 {quantile(errors, 0.9):.2f})",
        bound="at most 0.20",
        holds=quantile(errors, 0.5) <= 0.20,
    )


def _prefill(catalog: Catalog) -> Iterator[Check]:
    inside = early = n = 0
    with (DATA / "prefill_mfu.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["model"].startswith("P="):
                continue
            deployment = Deployment(quantization=row["quant"], devices=int(row["n"]))
            model, hardware = catalog.model(row["model"]), catalog.hardware_of(row["hardware"])
            machine, _ = machine_of(deployment, model, hardware, catalog, Workload())
            tokens, time_s = float(row["prompt_tokens"]), float(row["time_ms"]) / 1e3
            low, high = ttft_s(machine, tokens)
            inside += low <= time_s <= high
            early += time_s < ttft_floor_s(machine, tokens)
            n += 1
    yield Check(
        claim="measured times to the first token within the stated range (idle machine, no network)",
        found=f"{inside} of {n}",
        bound="at least 75 %",
        holds=inside / n >= 0.75,
    )
    yield Check(
        claim="measured times to the first token under the floor", found=f"{early} of {n}", bound="none", holds=early == 0
    )
