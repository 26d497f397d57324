"""The machine behind a simulated provider, which its clients cannot see, and the pace that the laws give it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from app.catalog.load import Catalog
from app.expectation.laws import Machine, expected_s, layer_law, prefill_s
from app.expectation.speculation import Speculation
from app.expectation.weights import WIDE, step_bytes, widths

PCIE_BYTES_S = 50e9
"""What PCIe 5.0 x16 carries of its 64 GB/s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hidden:
    """What really runs. `efficiency` is reached over expected speed: 1 is what the theory says, 0.25 a quarter of it.

    `speculation` accepts code as its alpha says, and prose by `prose` times that: drafts of surprising text are refused.
    `batch - 1` streams that nobody sees share the engine, each with `others_context` tokens of cache (None: as ours).
    `spill` is the share of the weights that lies in the host's memory and comes over PCIe in each step.
    """

    model_spec: str
    hardware: str
    devices: int = 1
    quantization: str = "BF16"
    batch: int = 1
    stack: str | None = None
    efficiency: float = 1.0
    speculation: Speculation | None = None
    others_context: int | None = None
    spill: float = 0.0
    prose: float = 0.68
    """Measured: acceptance of prose 0.59-0.69 where that of code is 0.87-0.98."""

    def acceptance(self, *, code: bool) -> float:
        """Probability that one drafted token is accepted; 0 without speculation."""
        if self.speculation is None:
            return 0.0
        return self.speculation.alpha if code else self.speculation.alpha * self.prose

    @property
    def draft(self) -> int:
        """Tokens drafted per step; 0 without speculation."""
        return 0 if self.speculation is None else self.speculation.gamma


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Seconds of one engine step, and of the prefill of so many tokens: a constant part and one per token."""

    step_s: float
    prefill_floor_s: float = 0.0
    prefill_token_s: float = 0.0

    def prefill_s(self, tokens: int) -> float:
        """Seconds until the prompt is read: the weights once at least, then linear in the tokens not in the cache."""
        return max(self.prefill_floor_s, self.prefill_token_s * tokens)


def pace_of(hidden: Hidden, *, catalog: Catalog, others: int = 0, context_tokens: int = 256) -> Pace:
    """The pace of a stream that shares the engine with `others` and with `hidden.batch - 1` that nobody sees.

    `t = max(bytes / (eta N BW), compute) + layers (tau + 2 all-reduces)`, or microseconds a layer on SRAM machines, over
    the efficiency; a step with a draft costs `1 + gamma c` of one without.

    Raises:
        NotFoundError: an id that the catalogue does not know.
    """
    m = machine_of(hidden, catalog=catalog, others=others, context_tokens=context_tokens)
    step_s = layer_law(m.hardware)[1] * 1e-6 * m.model.layers if m.hardware.by_layers else expected_s(m)
    spilt_s = hidden.spill * step_bytes(m.model, m.widths, batch=m.batch) / (m.lanes * PCIE_BYTES_S)
    step_s += spilt_s
    if hidden.speculation is not None:
        step_s *= 1 + hidden.speculation.gamma * hidden.speculation.cost
    floor = prefill_s(m, 1)[0]
    fast, slow = prefill_s(replace(m, batch=1), 1024)
    token_s = 0.0 if m.hardware.by_layers else (fast + slow) / 2 / 1024
    return Pace(
        step_s=step_s / hidden.efficiency,
        prefill_floor_s=(step_s if m.hardware.by_layers else floor + spilt_s) / hidden.efficiency,
        prefill_token_s=token_s / hidden.efficiency,
    )


def machine_of(hidden: Hidden, *, catalog: Catalog, others: int = 0, context_tokens: int = 256) -> Machine:
    """The machine as the laws see it; the cache is that of all streams at their mean context."""
    batch = hidden.batch + others
    theirs = context_tokens if hidden.others_context is None else hidden.others_context
    context = ((others + 1) * context_tokens + (hidden.batch - 1) * theirs) / batch
    model, quantization = catalog.model(hidden.model_spec), catalog.quantization(hidden.quantization)
    return Machine(
        model=model,
        widths=widths(model, quantization),
        format=quantization,
        hardware=catalog.hardware_of(hidden.hardware),
        devices=hidden.devices,
        batch=batch,
        context=context,
        kv_bits=WIDE,
        pipeline=False,
        stack=hidden.stack,
    )
