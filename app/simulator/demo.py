"""The configuration of the demo: what the simulated providers claim, which is not always what they run."""

from __future__ import annotations

SECRET_VARIABLE = "BANDWATCH_DEMO_WEBHOOK_SECRET"
"""The environment variable that signs the demo's webhooks; the receiver verifies with the same."""

_CONFIG = """\
# Made by `bandwatch demo`: six simulated providers, and a receiver for their alerts.
providers:
  healthy:  {{base_url: "{base}/healthy/v1", dialect: vllm}}
  slow:     {{base_url: "{base}/slow/v1", dialect: vllm}}
  sram:     {{base_url: "{base}/sram/v1", dialect: groq}}
  flaky:    {{base_url: "{base}/flaky/v1", dialect: openrouter}}
  experts:  {{base_url: "{base}/experts/v1", dialect: vllm}}
  drafting: {{base_url: "{base}/drafting/v1", dialect: vllm}}

recipes:
  demo: {{prompt: chat, prompt_tokens: 60, output_tokens: 64}}   # short, so that the slow one answers within its interval

targets:
  - name: healthy/llama-3.1-8b
    provider: healthy
    model: meta-llama/Llama-3.1-8B-Instruct
    every: 4s
    recipe: demo
    deployment: {{model_spec: Llama-3.1-8B-Instruct, hardware: H100-SXM-80GB, devices: 1, quantization: BF16, stack: vllm}}

  # Sold as an H100. It runs on an A10G: R is about 0.23, and the verdict says so.
  - name: slow/llama-3.1-8b
    provider: slow
    model: meta-llama/Llama-3.1-8B-Instruct
    every: 4s
    recipe: demo
    deployment: {{model_spec: Llama-3.1-8B-Instruct, hardware: H100-SXM-80GB, devices: 1, quantization: BF16, stack: vllm}}

  # SRAM hardware has no byte ceiling: it is judged by microseconds a layer.
  - name: sram/gpt-oss-120b
    provider: sram
    model: openai/gpt-oss-120b
    every: 4s
    recipe: demo
    deployment: {{model_spec: openai/gpt-oss-120b, hardware: groq-lpu-v1, devices: 576, quantization: MXFP4}}

  # Rate limits, server errors, cut streams, resets, stalls: about one call in four.
  - name: flaky/qwen3-32b
    provider: flaky
    model: Qwen/Qwen3-32B
    every: 4s
    recipe: demo
    deployment: {{model_spec: Qwen/Qwen3-32B, hardware: H100-SXM-80GB, devices: 1, quantization: FP8, stack: vllm}}

  - name: experts/qwen3-30b-a3b
    provider: experts
    model: Qwen/Qwen3-30B-A3B
    every: 5s
    recipe: demo
    deployment: {{model_spec: Qwen/Qwen3-30B-A3B, hardware: H100-SXM-80GB, devices: 1, quantization: BF16, stack: vllm}}

  # Faster than the theory of plain decoding: it drafts, and does not say so.
  - name: drafting/llama-3.3-70b
    provider: drafting
    model: meta-llama/Llama-3.3-70B-Instruct
    every: 5s
    recipe: demo
    deployment: {{model_spec: Llama-3.3-70B-Instruct, hardware: H100-SXM-80GB, devices: 4, quantization: FP8, stack: vllm}}

channels:
  receiver: {{kind: webhook, url: "http://127.0.0.1:{receiver}/", secret: "${{env:{secret}}}"}}

routes:
  - {{channels: [receiver]}}

# Windows of half a minute: enough to see a verdict and an incident while one looks on. Real services want 15m, the default.
thresholds: {{window: 30s, group_wait: 3s}}
"""


def demo_config(port: int, receiver_port: int) -> str:
    """The config file (YAML) of the demo.

    Args:
        port: where the simulator listens on 127.0.0.1.
        receiver_port: where the receiver of webhooks listens on 127.0.0.1; they are signed with `SECRET_VARIABLE`.
    """
    return _CONFIG.format(base=f"http://127.0.0.1:{port}", receiver=receiver_port, secret=SECRET_VARIABLE)
