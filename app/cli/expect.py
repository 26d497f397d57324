"""`bandwatch expect`: the calculator."""

from __future__ import annotations

import json
from pathlib import Path

import click


@click.command("expect")
@click.option("--model-spec", required=True, help="The model, by catalogue id or any alias.")
@click.option("--hardware", default=None, help="The accelerator; without it, the range over all that could be.")
@click.option("--devices", type=click.IntRange(1), default=None, help="How many; 1 where hardware is given.")
@click.option("--quantization", default=None, help="Weight format; the model's native one by default.")
@click.option("--bits", type=float, default=None, help="Width of the quantized weights instead of the format's.")
@click.option("--kv-bits", type=float, default=None, help="Width of the KV cache; 16 by default.")
@click.option("--batch", type=click.IntRange(1), default=1, show_default=True, help="Streams that share a step.")
@click.option("--context", "context_tokens", type=click.IntRange(0), default=2048, show_default=True)
@click.option("--prompt-tokens", type=click.IntRange(1), default=512, show_default=True)
@click.option("--parallelism", type=click.Choice(["tp", "pp"]), default="tp", show_default=True)
@click.option("--stack", default=None, help="Serving stack, such as vllm, llama.cpp, mlx.")
@click.option("--speculation", default="unknown", help="alpha,gamma[,cost], or on, off, unknown.")
@click.option("--observed", "observed_tps", type=float, default=None, help="A speed in tokens/s: which machines explain it?")
@click.option("--network", default=None, help="What the network adds to a first token, as measured, such as 12ms.")
@click.option("--catalog", "own", type=click.Path(path_type=Path), default=None, help="Rows of one's own: a file or a folder.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(
    *,
    model_spec: str,
    hardware: str | None,
    devices: int | None,
    quantization: str | None,
    bits: float | None,
    kv_bits: float | None,
    batch: int,
    context_tokens: int,
    prompt_tokens: int,
    parallelism: str,
    stack: str | None,
    speculation: str,
    observed_tps: float | None,
    network: str | None,
    own: Path | None,
    as_json: bool,
) -> None:
    """Compute what a deployment should reach: bytes per token, memory, ceiling, expected speed, prefill."""
    from app.catalog.load import load_catalog
    from app.expectation.body import expectation_json, explain
    from app.expectation.expect import Workload, expect
    from app.targets.deployment import Deployment

    deployment = Deployment(
        model_spec=model_spec,
        hardware=hardware,
        devices=devices if devices is not None or hardware is None else 1,
        quantization=quantization,
        bits=bits,
        kv_bits=kv_bits,
        batch=batch,
        parallelism="pp" if parallelism == "pp" else "tp",
        stack=stack,
        speculation=speculation,
    )
    work = Workload(context_tokens=context_tokens, prompt_tokens=prompt_tokens, network_s=_seconds(network))
    found = expect(deployment, catalog=load_catalog(own), workload=work, observed_tps=observed_tps)
    click.echo(json.dumps(expectation_json(found)) if as_json else explain(found))


def _seconds(text: str | None) -> float | None:
    from app.units import parse_duration

    try:
        return None if text is None else parse_duration(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--network") from None
