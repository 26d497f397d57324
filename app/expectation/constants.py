"""The constants of the laws, with where each comes from. None was fitted to a single row; docs/calibration.md has the data.

Per stack, `t = bytes / (eta BW) + layers tau` was fitted by Huber regression on the relative error of that stack's rows
(benchmarks/data/mbu_calibration.csv). The defaults are rounded so that no family of rows is favoured.
"""

from __future__ import annotations

from collections.abc import Mapping

ETA = 0.80
"""Achieved share of peak bandwidth: measured copy and m=1 GEMM rates lie at 0.75-0.91."""
TAU_DENSE_S = 60e-6
"""Latency per layer of a general engine."""
TAU_EXPERTS_S = 100e-6
"""The same with experts: 41 single-device MoE rows give 102 us."""
MFU = (0.2, 0.65)
"""Share of peak compute that prefill reaches, low and high (benchmarks/data/prefill_mfu.csv)."""
MFU_DECODE = 0.65
OVERHEAD = 1.1
"""Weights times this: activations, graphs, fragmentation."""
RANGE = (0.6, 1.25)
RED, AMBER, TUNED = 0.4, 0.6, 1.25
SPECULATION_MOST = 3.5
"""Tokens per step that speculation is believed on GPUs; the best general measurement is 3.0."""
SPECULATION_MOST_SRAM = 7.0
DRAFT_COST = 0.1
"""Cost of one draft token against a target step where nobody says: sweeps give 0.085 (MTP) to 0.19."""

ALL_REDUCE_S: Mapping[str, float] = {
    "A100-SXM-80GB": 7.0e-6,
    "A100-SXM-40GB": 7.0e-6,
    "H100-SXM-80GB": 5.5e-6,
    "H200-SXM-141GB": 5.7e-6,
    "H20-96GB": 5.7e-6,
    "B200-SXM-180GB": 7.0e-6,
    "MI300X-192GB": 8.0e-6,
}
"""One 16 KB all-reduce inside a CUDA graph (benchmarks/data; theory of tensor parallelism)."""
ALL_REDUCE_DEFAULT_S = 6e-6

STACKS: Mapping[str, tuple[float, float]] = {
    "gpt-fast": (0.76, 31e-6),
    "lmdeploy": (0.76, 31e-6),
    "vllm-0.6": (0.83, 149e-6),
    "llama.cpp": (0.84, 55e-6),
    "llama.cpp-rocm": (0.86, 67e-6),
    "llama.cpp-metal": (0.90, 150e-6),
    "mlx": (0.87, 83e-6),
    "exllamav2": (0.89, 45e-6),
    "mlc": (0.89, 45e-6),
    "tensorrt-llm": (0.80, 38e-6),
    "vllm": (ETA, TAU_DENSE_S),
    "sglang": (ETA, TAU_DENSE_S),
}
"""eta and tau by serving stack, where it is known."""
STACK_NAMES: Mapping[str, str] = {
    "vllm-0.6.3": "vllm-0.6",
    "llamacpp": "llama.cpp",
    "ollama": "llama.cpp",
    "lm-studio": "llama.cpp",
    "turbomind": "lmdeploy",
    "trt-llm": "tensorrt-llm",
    "trtllm": "tensorrt-llm",
    "exllama": "exllamav2",
    "mlx-lm": "mlx",
}
"""Other names of stacks."""
STACK_BY_VENDOR: Mapping[tuple[str, str], str] = {
    ("llama.cpp", "apple"): "llama.cpp-metal",
    ("llama.cpp", "amd"): "llama.cpp-rocm",
}
"""One engine runs differently on other vendors' machines."""

LAYER_LAW_US: Mapping[str, tuple[float, float, float]] = {
    "groq": (36.0, 46.0, 65.0),
    "cerebras": (8.0, 9.0, 17.0),
    "sambanova": (27.0, 40.0, 83.0),
}
"""Microseconds per layer (low, middle, high) of every plain published row of the vendor, 2024-2026."""

FEASIBLE = (RED, TUNED)
"""R that a machine may show and still explain an observation: what no verdict would flag."""
FEASIBLE_BATCH = 32
"""Streams that an engine nobody knows may share a step among; more of them only make it slower."""
USABLE = 0.97 * 1024**3 / 1e9
"""Of a stated GB of memory, the GB that weights and cache can have: it is sold by the GiB, and drivers take a few per cent."""
