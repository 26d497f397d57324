"""The reference page of the API, made from its OpenAPI description: plain HTML, no script, nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

STYLE = """
:root{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif}body{max-width:60rem;margin:0 auto;padding:1rem}
h2{margin:2rem 0 .5rem;text-transform:capitalize}
details{border:1px solid #8885;border-radius:6px;margin:.4rem 0;padding:.4rem .8rem}
summary{cursor:pointer}summary b{display:inline-block;min-width:4.5rem;font-family:ui-monospace,monospace}
code,pre{font-family:ui-monospace,monospace;font-size:.9em}pre{overflow:auto;background:#8881;padding:.6rem;border-radius:4px}
code{overflow-wrap:anywhere}details,td{overflow-wrap:anywhere}nav{padding:.4rem 0}
table{border-collapse:collapse;width:100%}
td,th{text-align:left;vertical-align:top;padding:.25rem .6rem .25rem 0;border-bottom:1px solid #8883}
"""
_METHODS = ("get", "post", "put", "patch", "delete")


def page(schema: dict[str, Any]) -> str:
    """The whole page."""
    groups: dict[str, list[str]] = {}
    for path, operations in schema["paths"].items():
        for method in _METHODS:
            if method in operations:
                operation = operations[method]
                groups.setdefault(operation.get("tags", ["other"])[0], []).append(_operation(method, path, operation))
    body = "".join(f"<h2>{escape(tag)}</h2>{''.join(parts)}" for tag, parts in groups.items())
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Bandwatch API</title>'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<link rel="stylesheet" href="/docs.css"></head><body>'
        '<nav><a href="/">Bandwatch</a></nav>'
        f"<h1>Bandwatch API {escape(schema['info']['version'])}</h1><p>{escape(schema['info']['description'])} "
        'For machines: <a href="/openapi.json">openapi.json</a>.</p><p>Keys go in <code>Authorization: Bearer bw_…</code>. '
        "Lists answer <code>items</code> and <code>next_cursor</code>; errors are <code>application/problem+json</code>.</p>"
        f"{body}</body></html>"
    )


def _operation(method: str, path: str, operation: dict[str, Any]) -> str:
    text = escape(operation.get("description", "")).replace("\n", "<br>")
    answers = ", ".join(
        f"<code>{escape(code)}</code> {escape(answer['description'])}" for code, answer in operation["responses"].items()
    )
    head = f"<b>{method.upper()}</b> <code>{escape(path)}</code> {escape(operation.get('summary', ''))}"
    return (
        f"<details><summary>{head}</summary><p>{text}</p>{''.join(_parameters(operation))}<p>Answers: {answers}</p></details>"
    )


def _parameters(operation: dict[str, Any]) -> Iterator[str]:
    rows = [
        f"<tr><td><code>{escape(each['name'])}</code></td><td>{escape(each['in'])}</td>"
        f"<td>{escape(_type(each['schema']))}</td><td>{escape(each.get('description', ''))}</td></tr>"
        for each in operation.get("parameters", [])
    ]
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    rows += [
        f"<tr><td><code>{escape(name)}</code></td><td>body</td><td>{escape(_type(field))}</td>"
        f"<td>{escape(field.get('description', ''))}</td></tr>"
        for name, field in body.get("properties", {}).items()
    ]
    if rows:
        yield f"<table><tr><th>name</th><th>in</th><th>type</th><th></th></tr>{''.join(rows)}</table>"


def _type(schema: dict[str, Any]) -> str:
    """A short name of a type."""
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    if "anyOf" in schema:
        return " | ".join(_type(each) for each in schema["anyOf"] if each.get("type") != "null")
    if "$ref" in schema:
        return str(schema["$ref"].rsplit("/", 1)[1])
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return str(schema.get("format", schema.get("type", "any")))
