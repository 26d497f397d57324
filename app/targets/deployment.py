"""What is known of the machine behind a target: all that the calculator needs of the configuration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """What is known of the machine behind a target; None is unknown, and the expectation becomes a range.

    `speculation` is `unknown`, `off`, `on`, or `alpha,gamma[,cost]`; `parallelism` is `tp` or `pp`; ids are the
    catalogue's (case-insensitive, aliases allowed).
    """

    model_spec: str | None = None
    hardware: str | None = None
    devices: int | None = None
    quantization: str | None = None
    bits: float | None = None
    kv_bits: float | None = None
    parallelism: Literal["tp", "pp"] = "tp"
    stack: str | None = None
    batch: int = 1
    speculation: str = "unknown"
