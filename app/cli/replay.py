"""`bandwatch replay`: read recorded bodies as a probe would."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from app.errors import Problem, UsageError

KEPT = "*.recording.gz"
PLAIN = (KEPT, "*.sse", "*.ndjson", "*.json", "*.txt", "*.html")
META = ".meta.json"


@click.command("replay")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--status", type=int, default=200, show_default=True, help="HTTP status of bodies without a meta file.")
@click.option("--content-type", default=None, help="Content type of bodies without a meta file.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array, an object a file.")
def command(*, paths: tuple[Path, ...], status: int, content_type: str | None, as_json: bool) -> None:
    """Read recorded response bodies and print what a probe would have made of them.

    `X` with `X.meta.json` beside it takes status, content type and headers from there. A folder means every file with a
    meta file; if none has one, all kept recordings, event streams, NDJSON, JSON, text and HTML files in it. A kept
    recording, as `/api/v1/runs/ID/recording` sends it, has its times too, and gives the figures of its run again.
    """
    found = [_replay(path, status=status, content_type=content_type) for path in _files(paths)]
    if as_json:
        click.echo(json.dumps(found, ensure_ascii=False))
        return
    for each in found:
        click.echo(_line(each))


def _files(paths: tuple[Path, ...]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            inside = sorted(p for p in path.iterdir() if p.is_file() and not p.name.endswith(META))
            with_meta = [p for p in inside if p.with_name(p.name + META).is_file()]
            yield from with_meta or [p for p in inside if any(p.match(pattern) for pattern in PLAIN)]
        elif path.is_file():
            yield path
        else:
            raise UsageError(f"{path}: there is no such file or folder")


def _replay(path: Path, *, status: int, content_type: str | None) -> dict[str, Any]:
    from app.measurement.evidence import decode, is_recording
    from app.measurement.replay import Recorded, replay, replay_recording

    meta = _meta(path.with_name(path.name + META))
    try:
        body = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror})") from error
    if is_recording(body):
        return replay_recording(decode(body), file=str(path))
    recorded = Recorded(
        body=body,
        status=meta.get("http_status") or status,
        content_type=meta.get("content_type", content_type),
        headers=meta.get("headers"),
        read_sizes=meta.get("network_read_sizes"),
    )
    return replay(recorded, file=str(path), now=datetime.now(UTC))


def _meta(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise UsageError(str(Problem(file=str(path), message=f"not a meta file: {error}"))) from error
    if not isinstance(found, dict):
        raise UsageError(str(Problem(file=str(path), message="not a meta file: it must hold an object")))
    return found


def _line(each: dict[str, Any]) -> str:
    problem = "" if each["error_class"] == "none" else f"/{each['error_class']}"
    tokens = "-" if each["output_tokens"] is None else f"{each['output_tokens']} tokens ({each['token_source']})"
    first = "-" if each["first_output_index"] is None else str(each["first_output_index"])
    notes = f"  [{', '.join(each['notes'])}]" if each["notes"] else ""
    figures = _figures(each["figures"])
    text = f"  {each['error_text']}" if each["error_text"] else ""
    said = f"{each['events']} events, first output {first}, {tokens}{figures}"
    return f"{each['file']}: {each['outcome']}{problem}  {said}{notes}{text}"


def _figures(each: dict[str, Any] | None) -> str:
    if each is None or each["ttft_s"] is None:
        return ""
    speed = "" if each["decode_tps"] is None else f", {each['decode_tps']:.1f} tok/s"
    return f", TTFT {each['ttft_s'] * 1000:.1f} ms{speed}"
