"""Providers drawn from a seed, and what may go wrong with one: the truth that a diagnosis is held against."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from random import Random

from app.catalog.load import Catalog
from app.expectation.constants import OVERHEAD
from app.expectation.laws import Machine
from app.expectation.speculation import Speculation
from app.expectation.weights import resident_bytes
from app.simulator.hidden import Hidden, machine_of, pace_of
from app.simulator.host import Host
from app.simulator.line import Line
from app.simulator.plan import Habits

MODELS = (
    "meta-llama/Llama-3.1-8B-Instruct",
    "meta-llama/Llama-3.3-70B-Instruct",
    "Qwen/Qwen3-32B",
    "Qwen/Qwen3-14B",
    "Qwen/Qwen3-30B-A3B",
    "Qwen/Qwen3-235B-A22B-Instruct-2507",
    "openai/gpt-oss-120b",
    "google/gemma-3-27b-it",
    "deepseek-ai/DeepSeek-R1",
)
MACHINES = ("A100-SXM-80GB", "H100-SXM-80GB", "H200-SXM-141GB", "B200-SXM-180GB", "MI300X-192GB")
DEVICES = (1, 2, 4, 8)
NATIVE = {"openai/gpt-oss-120b": ("MXFP4",), "deepseek-ai/DeepSeek-R1": ("FP8", "NVFP4")}
FORMATS = ("BF16", "FP8", "GPTQ-INT4")
GAIN = 1.25
"""A draft that brings less to code is none that anybody runs."""
SLOWER = 1.5
"""What is planted as contention makes a step at least this much longer."""


class Trouble(StrEnum):
    """One thing that makes a provider slower than it was."""

    QUEUE = "queue"
    CONTENTION = "contention"
    SPILL = "spill"
    SPECULATION_OFF = "speculation_off"
    CACHE_LOST = "cache_lost"
    NETWORK = "network"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A provider and the way to it."""

    host: Host
    line: Line


def draw_scene(
    rng: Random, *, catalog: Catalog, speculates: bool | None = None, caches: bool | None = None, load: int = 16
) -> Scene:
    """A healthy provider: a machine that holds its model, with at most `load` streams on it, and the habits of its kind.

    Speculation and prompt cache are drawn unless they are told.
    """
    hidden = _machine(rng, catalog, load=load)
    if speculates if speculates is not None else rng.random() < 0.5:
        hidden = replace(hidden, speculation=_draft(rng), prose=rng.uniform(0.6, 0.8))
    cached = caches if caches is not None else rng.random() < 0.5
    habits = Habits(
        queue_median_s=math.exp(rng.uniform(math.log(0.005), math.log(0.06))),
        queue_sigma=rng.uniform(0.3, 0.7),
        jitter=rng.uniform(0.02, 0.08),
        sway=rng.uniform(0.01, 0.05),
        steps_per_chunk=rng.choice((1.0, 1.0, 1.0, 1.2, 2.0)),
        flush_s=rng.choice((0.0, 0.0, 0.0, 0.0, 0.02)),
        intrusion=rng.choice((0.0, 0.0, 0.02)),
        intrusion_s=0.01,
    )
    host = Host(
        name="drawn",
        model=hidden.model_spec,
        hidden=hidden,
        habits=habits,
        cache_tokens=rng.choice((16, 64, 128)) if cached else 0,
    )
    line = Line(
        rtt_s=math.exp(rng.uniform(math.log(0.001), math.log(0.08))),
        jitter=rng.uniform(0.0, 0.1),
        loss=rng.choice((0.0, 0.0, 0.0002)),
    )
    return Scene(host=host, line=line)


def plant(scene: Scene, trouble: Trouble, *, rng: Random, catalog: Catalog) -> Scene:
    """The same provider with that trouble. A lost draft or cache asks for a scene that has one."""
    host, hidden, habits = scene.host, scene.host.hidden, scene.host.habits
    match trouble:
        case Trouble.QUEUE:
            wait = math.exp(rng.uniform(math.log(0.4), math.log(4.0)))
            return _with(scene, replace(host, habits=replace(habits, queue_median_s=wait, queue_sigma=rng.uniform(0.4, 0.9))))
        case Trouble.CONTENTION:
            return _with(scene, _crowded(host, rng, catalog))
        case Trouble.SPILL:
            return _with(scene, replace(host, hidden=_spilt(hidden, rng.uniform(0.12, 0.22), catalog)))
        case Trouble.SPECULATION_OFF:
            return _with(scene, replace(host, hidden=replace(hidden, speculation=None)))
        case Trouble.CACHE_LOST:
            return _with(scene, replace(host, cache_tokens=0))
        case Trouble.NETWORK:
            far = Line(
                rtt_s=rng.uniform(0.2, 0.8) + scene.line.rtt_s,
                jitter=rng.uniform(0.05, 0.4),
                loss=rng.choice((0.0, 0.005, 0.02)),
            )
            return replace(scene, line=far)


def _with(scene: Scene, host: Host) -> Scene:
    return replace(scene, host=host)


def _machine(rng: Random, catalog: Catalog, *, load: int) -> Hidden:
    while True:
        spec = rng.choice(MODELS)
        hidden = Hidden(
            model_spec=spec,
            hardware=rng.choice(MACHINES),
            devices=rng.choice(DEVICES),
            quantization=rng.choice(NATIVE.get(spec, FORMATS)),
            batch=int(math.exp(rng.uniform(0.0, math.log(load)))),
            others_context=rng.randint(300, 3000),
        )
        if _fits(machine_of(hidden, catalog=catalog)):
            return hidden


def _fits(m: Machine) -> bool:
    return OVERHEAD * resident_bytes(m.model, m.widths) + m.batch * m.cache <= m.devices * m.hardware.memory_bytes


def _draft(rng: Random) -> Speculation:
    while True:
        found = Speculation(alpha=rng.uniform(0.65, 0.95), gamma=rng.randint(1, 5), cost=rng.uniform(0.02, 0.15))
        if found.speedup >= GAIN:
            return found


def _crowded(host: Host, rng: Random, catalog: Catalog) -> Host:
    """More and longer streams of others on the engine, their prompts between our steps, until it is that much slower."""
    before_s = pace_of(host.hidden, catalog=catalog).step_s
    crowd = replace(host.hidden, batch=max(24, 2 * host.hidden.batch), others_context=rng.randint(2000, 8000))
    piece_s = 512 * pace_of(host.hidden, catalog=catalog).prefill_token_s
    intrusion, intrusion_s = rng.uniform(0.1, 0.4), max(piece_s, before_s) * rng.uniform(1.0, 3.0)
    while pace_of(crowd, catalog=catalog).step_s + intrusion * intrusion_s < SLOWER * before_s:
        crowd = replace(crowd, batch=int(crowd.batch * 1.3))
    habits = replace(
        host.habits,
        intrusion=intrusion,
        intrusion_s=intrusion_s,
        sway=rng.uniform(0.06, 0.2),
        queue_median_s=2 * host.habits.queue_median_s,
    )
    return replace(host, hidden=crowd, habits=habits)


def _spilt(hidden: Hidden, ratio: float, catalog: Catalog) -> Hidden:
    """So many of the weights in host memory that speed falls to that ratio."""
    plain_s = pace_of(replace(hidden, speculation=None), catalog=catalog).step_s
    whole_s = pace_of(replace(hidden, speculation=None, spill=1.0), catalog=catalog).step_s - plain_s
    return replace(hidden, spill=min(0.9, plain_s * (1 / ratio - 1) / whole_s))
