"""Machines that nobody has declared: which of the catalogue could it be, and which explain a speed that was observed.

Speed does not tell the machine: the answer is a set, with the least bandwidth and the largest precision in it, never a
point. A machine explains a speed when it can hold the model, when no law of the ceiling is broken, and when the speed lies
where no verdict would flag it, alone or in a step shared with others (theory of unknown deployments, sections 6.5 and 6.6).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app.catalog.load import Catalog
from app.catalog.model import Accelerator, Model, Quantization
from app.errors import UsageError
from app.expectation.constants import (
    FEASIBLE,
    FEASIBLE_BATCH,
    OVERHEAD,
    SPECULATION_MOST,
    SPECULATION_MOST_SRAM,
    USABLE,
)
from app.expectation.laws import flops_of, layer_law, pace, step_s
from app.expectation.machine import Workload, native_format
from app.expectation.model import Explaining, Feasible
from app.expectation.speculation import parse_speculation
from app.expectation.weights import WIDE, cache_bytes, resident_bytes, step_bytes, streamed, widths
from app.targets.deployment import Deployment

FORMATS = ("BF16", "FP8", "INT8-WO", "MXFP4", "NVFP4", "NVFP4-LINEAR", "GPTQ-INT4", "Q4_K_M", "Q6_K", "Q8_0")
"""Formats that models are served in, beside their native one."""
SERVED = ("BF16", "FP8", "NVFP4", "GPTQ-INT4")
"""Those that a provider is expected to serve where nobody says."""
COUNTS = (1, 2, 4, 8)
LARGE = (16, 32)
"""More than one host, for machines that are built into racks."""
RACKS = frozenset({"dc-gpu", "tpu", "asic"})


@dataclass(frozen=True, slots=True)
class Served:
    """A model in one format, with all that does not depend on the machine. Bytes and bits."""

    quantization: Quantization
    bits: float
    resident: float
    step: float
    crowded: float
    """Bytes of a step that the largest crowd shares."""


@dataclass(slots=True)
class Rig:
    """One deployment that could be it: seconds of a step alone and in a crowd, by the laws of `app.expectation.laws`."""

    hardware: Accelerator
    devices: int
    served: Served
    alone_s: float
    crowded_s: float
    ceiling_tps: float


def reach(model: Model, *, catalog: Catalog, deployment: Deployment, work: Workload) -> tuple[float, float, float, int]:
    """Slowest and fastest expected speed, highest ceiling (tokens/s), and how many deployments could be this one.

    Raises:
        UsageError: nothing in the catalogue can hold the model as declared.
    """
    speculation = parse_speculation(deployment.speculation)
    gain = 1.0 if speculation is None else speculation.speedup
    most = _most(deployment.speculation, 1.0)
    search = Search(model=model, catalog=catalog, asked=deployment, work=work, formats=SERVED, counts=COUNTS, kinds=RACKS)
    rigs = [rig for rig in search.rigs(crowd=deployment.batch) if search.fits(rig)]
    if not rigs:
        raise UsageError(f"no machine of the catalogue that fits what is declared can hold {model.id}")
    times = [rig.alone_s for rig in rigs]
    return gain / max(times), gain / min(times), most * max(rig.ceiling_tps for rig in rigs), len(rigs)


def feasible(
    model: Model, observed_tps: float, *, catalog: Catalog, deployment: Deployment | None = None, work: Workload | None = None
) -> Feasible:
    """The machines that explain an observed speed of one stream, within what is declared.

    Raises:
        UsageError: the speed is not positive, or beyond any number.
    """
    if not 0 < observed_tps < float("inf"):
        raise UsageError(f"an observed speed must be positive, not {observed_tps}")
    asked, work = deployment or Deployment(), work or Workload()
    search = Search(model=model, catalog=catalog, asked=asked, work=work, formats=FORMATS, counts=COUNTS + LARGE, kinds=None)
    found = [*_by_bytes(search, observed_tps), *_by_layers(search, observed_tps)]
    plain = [each.bits for each in found if not each.speculation]
    least = observed_tps * min(served.step for served in search.served(crowd=1))
    return Feasible(
        observed_tps=observed_tps,
        deployments=len(found),
        least_bandwidth=least,
        least_bandwidth_speculating=least / _most(asked.speculation, SPECULATION_MOST),
        largest_bits=max(plain, default=None),
        largest_bits_speculating=max((each.bits for each in found), default=None),
        bandwidth_by_bits=tuple(sorted((served.bits, observed_tps * served.step) for served in search.served(crowd=1))),
        explaining=tuple(_grouped(found)),
    )


@dataclass(frozen=True, slots=True)
class _Found:
    hardware: str
    deployment: tuple[int | None, str | None]
    bits: float
    speculation: bool


def _grouped(found: Sequence[_Found]) -> Iterator[Explaining]:
    by_hardware: dict[str, list[_Found]] = {}
    for each in found:
        by_hardware.setdefault(each.hardware, []).append(each)
    for hardware, every in by_hardware.items():
        yield Explaining(
            hardware=hardware,
            plain=tuple(each.deployment for each in every if not each.speculation),
            speculating=tuple(each.deployment for each in every if each.speculation),
        )


def _most(speculation: str, unknown: float) -> float:
    """Tokens a step that are possible; `unknown` where nobody says whether there is speculation at all."""
    known = parse_speculation(speculation)
    if known is not None:
        return known.tokens_per_step
    return {"off": 1.0, "none": 1.0, "on": max(unknown, SPECULATION_MOST)}.get(speculation.strip().lower(), unknown)


def _by_bytes(search: Search, tps: float) -> Iterator[_Found]:
    low, high = FEASIBLE
    most = _most(search.asked.speculation, SPECULATION_MOST)
    slowest_s, fastest_s, at_least = low / tps, high * most / tps, tps / most
    for rig in search.rigs(crowd=max(search.asked.batch, FEASIBLE_BATCH)):
        if rig.crowded_s < slowest_s or rig.alone_s > fastest_s or rig.ceiling_tps < at_least:
            continue
        needs = tps > min(rig.ceiling_tps, high / rig.alone_s)
        yield _Found(rig.hardware.id, (rig.devices, rig.served.quantization.id), rig.served.bits, needs)


def _by_layers(search: Search, tps: float) -> Iterator[_Found]:
    """SRAM and dataflow machines explain a speed by the time of a layer; their number and precision cannot be told."""
    (low, high), most = FEASIBLE, _most(search.asked.speculation, SPECULATION_MOST_SRAM)
    bits = search.served(crowd=1)[0].bits
    for hardware in search.hardware():
        if not hardware.by_layers:
            continue
        fast, _, slow = (1e6 / (search.model.layers * us) for us in layer_law(hardware))
        if low * slow <= tps <= high * most * fast:
            yield _Found(hardware.id, (None, None), bits, tps > high * fast)


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """The deployments within what is declared. What is not declared runs over the catalogue."""

    model: Model
    catalog: Catalog
    asked: Deployment
    work: Workload
    formats: tuple[str, ...]
    counts: tuple[int, ...]
    kinds: frozenset[str] | None

    def hardware(self) -> Sequence[Accelerator]:
        """What is declared, or every machine whose figures are confirmed."""
        if self.asked.hardware is not None:
            return (self.catalog.hardware_of(self.asked.hardware),)
        every = (row for row in self.catalog.accelerators.values() if row.confidence != "low")
        return [row for row in every if self.kinds is None or row.kind in self.kinds]

    def served(self, *, crowd: int) -> list[Served]:
        """The model in each format that it could be served in; the native one first."""
        native = native_format(self.model, self.catalog).id
        names = dict.fromkeys((native, *self.formats)) if self.asked.quantization is None else (self.asked.quantization,)
        return [self._served(self.catalog.quantization(name), crowd) for name in names]

    def _served(self, quantization: Quantization, crowd: int) -> Served:
        w = widths(self.model, quantization, bits=self.asked.bits)
        alone = self.asked.batch
        return Served(
            quantization=quantization,
            bits=w.quantized,
            resident=resident_bytes(self.model, w),
            step=step_bytes(self.model, w, batch=alone) + alone * self.cache,
            crowded=step_bytes(self.model, w, batch=crowd) + crowd * self.cache,
        )

    @property
    def cache(self) -> float:
        """KV bytes of one stream."""
        return cache_bytes(self.model, self.work.context_tokens, bits=self.asked.kv_bits or WIDE)

    def fits(self, rig: Rig) -> bool:
        """Does it hold the model as the calculator asks, with room to spare?"""
        need = OVERHEAD * rig.served.resident + self.asked.batch * self.cache
        return need <= rig.devices * rig.hardware.memory_bytes

    def rigs(self, *, crowd: int) -> Iterator[Rig]:
        """Every deployment that can hold the weights and the cache, if only just."""
        served, flop = self.served(crowd=crowd), 2 * streamed(self.model)
        cache = self.asked.batch * self.cache
        for hardware in self.hardware():
            if hardware.by_layers:
                continue
            one, several = (pace(self.model, hardware, lanes=lanes, stack=self.asked.stack) for lanes in (1, 2))
            for each in served:
                room = (each.resident + cache) / (hardware.memory_bytes * USABLE)
                flops = flops_of(hardware, each.quantization)
                compute_s = 0.0 if flops is None else flop / flops
                for devices in self._counts(hardware):
                    if devices >= room:
                        lanes = 1 if self.asked.parallelism == "pp" else devices
                        at = several if lanes > 1 else one
                        yield self._rig(hardware, devices, each, lanes=lanes, pace_s=at, compute_s=compute_s, crowd=crowd)

    def _counts(self, hardware: Accelerator) -> tuple[int, ...]:
        if self.asked.devices is not None:
            return (self.asked.devices,)
        return self.counts if hardware.kind in RACKS else tuple(n for n in self.counts if n not in LARGE)

    def _rig(
        self,
        hardware: Accelerator,
        devices: int,
        served: Served,
        *,
        lanes: int,
        pace_s: tuple[float, float, float],
        compute_s: float,
        crowd: int,
    ) -> Rig:
        eta, tau, reduce = pace_s
        rate, fixed_s = lanes * hardware.bandwidth, self.model.layers * (tau + 2 * reduce)
        read_s, alone_c = served.step / rate, self.asked.batch * compute_s / lanes
        return Rig(
            hardware,
            devices,
            served,
            step_s(read_s, alone_c, eta=eta, fixed_s=fixed_s),
            step_s(served.crowded / rate, crowd * compute_s / lanes, eta=eta, fixed_s=fixed_s),
            1 / max(read_s, alone_c),
        )
