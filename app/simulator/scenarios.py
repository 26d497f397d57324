"""The providers of each scenario."""

from __future__ import annotations

from collections.abc import Mapping

from app.expectation.speculation import Speculation
from app.simulator.faults import Fault
from app.simulator.hidden import Hidden
from app.simulator.host import Host
from app.simulator.plan import Habits

LLAMA_8B = "meta-llama/Llama-3.1-8B-Instruct"
LLAMA_70B = "meta-llama/Llama-3.3-70B-Instruct"
QWEN_MOE = "Qwen/Qwen3-30B-A3B"
QWEN_32B = "Qwen/Qwen3-32B"
GPT_OSS = "openai/gpt-oss-120b"

_STEADY = Habits(queue_median_s=0.020, queue_sigma=0.5, jitter=0.05)

DEMO = (
    Host(
        name="healthy",
        model=LLAMA_8B,
        hidden=Hidden(model_spec=LLAMA_8B, hardware="H100-SXM-80GB", stack="vllm"),
        habits=_STEADY,
        cache_tokens=16,
    ),
    # Sold as an H100, served from an A10G: a quarter of the bandwidth, and so of the speed.
    Host(
        name="slow",
        model=LLAMA_8B,
        hidden=Hidden(model_spec=LLAMA_8B, hardware="A10G-24GB", stack="vllm"),
        habits=Habits(queue_median_s=0.120, queue_sigma=0.6, jitter=0.08),
    ),
    Host(
        name="sram",
        model=GPT_OSS,
        hidden=Hidden(model_spec=GPT_OSS, hardware="GROQ-LPU-V1", devices=576, quantization="MXFP4"),
        dialect="groq",
        habits=Habits(queue_median_s=0.060, queue_sigma=0.8, jitter=0.04, steps_per_chunk=1.2, reasoning=0.3),
    ),
    Host(
        name="flaky",
        model=QWEN_32B,
        hidden=Hidden(model_spec=QWEN_32B, hardware="H100-SXM-80GB", quantization="FP8", stack="vllm"),
        dialect="openrouter",
        habits=Habits(queue_median_s=0.060, queue_sigma=0.9, utilization=0.3, service_s=0.25, jitter=0.10, steps_per_chunk=1.3),
        odds={
            Fault.RATE_LIMITED: 0.08,
            Fault.SERVER_ERROR: 0.03,
            Fault.OVERLOADED: 0.03,
            Fault.BAD_GATEWAY: 0.02,
            Fault.ERROR_INSIDE: 0.03,
            Fault.TRUNCATED: 0.02,
            Fault.RESET: 0.02,
            Fault.STALLED: 0.01,
            Fault.EMPTY: 0.01,
        },
    ),
    Host(
        name="experts",
        model=QWEN_MOE,
        hidden=Hidden(model_spec=QWEN_MOE, hardware="H100-SXM-80GB", stack="vllm"),
        habits=_STEADY,
        cache_tokens=16,
    ),
    Host(
        name="drafting",
        model=LLAMA_70B,
        hidden=Hidden(
            model_spec=LLAMA_70B,
            hardware="H100-SXM-80GB",
            devices=4,
            quantization="FP8",
            stack="vllm",
            speculation=Speculation(alpha=0.9, gamma=3, cost=0.1),
        ),
        habits=_STEADY,
    ),
)
"""Healthy, far too slow, on SRAM, failing now and then, a healthy mixture of experts, and one that drafts."""

SCENARIOS: Mapping[str, tuple[Host, ...]] = {"demo": DEMO}
"""Name -> hosts."""
