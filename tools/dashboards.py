"""Write the Grafana dashboards, `deploy/grafana/dashboards/*.json`. A test holds the files to what this script makes.

Every replica of Bandwatch reports the same figures of a target, so each expression takes `max without (instance, job)` of
them before it adds anything up.
"""

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "deploy" / "grafana" / "dashboards"
SOURCE = {"type": "prometheus", "uid": "${source}"}
ANY, OWN = 'target=~"$target"', 'target="$target"'
ALL, ONE = f'{ANY},location=~"$location"', f'{OWN},location=~"$location"'
NOT_OK = ',outcome!="ok"'
Json = dict[str, Any]


def eq(name: str, value: str) -> str:
    """A label with just this value."""
    return f'{name}="{value}"'


def one(metric: str, labels: str = "") -> str:
    """A metric, whichever replica it comes from."""
    return f"max without (instance, job) ({metric}{{{labels}}})"


def rate(metric: str, labels: str = "") -> str:
    return f"max without (instance, job) (rate({metric}{{{labels}}}[$window]))"


def quantile(q: float, metric: str, labels: str, by: str = "target") -> str:
    return f"histogram_quantile({q}, sum by ({by}, le) ({rate(metric + '_bucket', labels)}))"


def panel(
    title: str, kind: str, *targets: tuple[str, str], unit: str = "short", wide: int = 12, high: int = 8, **more: Any
) -> Json:
    """A panel of (expression, legend) pairs."""
    instant = kind in {"stat", "table", "bargauge"}
    custom = {} if kind != "timeseries" else {"custom": {"fillOpacity": 8, "showPoints": "never", "spanNulls": 300000}}
    return {
        "title": title,
        "type": kind,
        "datasource": SOURCE,
        "gridPos": {"w": wide, "h": high},
        "fieldConfig": {
            "defaults": {"unit": unit, **custom, **more.pop("defaults", {})},
            "overrides": more.pop("overrides", []),
        },
        "options": more.pop("options", {}),
        "targets": [
            {
                "refId": chr(65 + number),
                "datasource": SOURCE,
                "expr": expression,
                "legendFormat": legend,
                "instant": instant,
                "range": not instant,
                **({"format": "table"} if kind == "table" else {}),
            }
            for number, (expression, legend) in enumerate(targets)
        ],
        **more,
    }


def steps(*pairs: tuple[float | None, str]) -> Json:
    return {"thresholds": {"mode": "absolute", "steps": [{"value": value, "color": color} for value, color in pairs]}}


RATIO = steps((None, "red"), (0.4, "orange"), (0.6, "green"), (1.25, "blue"))
TROUBLE = steps((None, "green"), (1, "red"))
LINES = {"thresholdsStyle": {"mode": "dashed"}}


def variable(name: str, query: str, *, several: bool) -> Json:
    return {
        "name": name,
        "type": "query",
        "datasource": SOURCE,
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "multi": several,
        "includeAll": several,
        **({"allValue": ".*", "current": {"text": "All", "value": "$__all"}} if several else {}),
    }


def dashboard(uid: str, title: str, panels: list[Json], *, several: bool) -> Json:
    x = y = row = 0
    for number, each in enumerate(panels, start=1):
        place = each["gridPos"]
        if x + place["w"] > 24:
            x, y = 0, y + row
            row = 0
        place |= {"x": x, "y": y}
        x, row = x + place["w"], max(row, place["h"])
        each["id"] = number
    return {
        "uid": uid,
        "title": title,
        "tags": ["bandwatch"],
        "schemaVersion": 41,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "links": [{"type": "dashboards", "tags": ["bandwatch"], "title": "Bandwatch", "asDropdown": True, "includeVars": True}],
        "templating": {
            "list": [
                {"name": "source", "type": "datasource", "query": "prometheus", "label": "data source"},
                variable("target", "label_values(bandwatch_target_info, target)", several=several),
                variable("location", "label_values(bandwatch_probe_runs_total, location)", several=True),
                {
                    "name": "window",
                    "type": "custom",
                    "query": "5m,15m,1h,6h,24h",
                    "current": {"text": "15m", "value": "15m"},
                    "options": [{"text": w, "value": w, "selected": w == "15m"} for w in ("5m", "15m", "1h", "6h", "24h")],
                },
            ]
        },
        "panels": panels,
    }


def overview() -> Json:
    hide = {"Time": True, "__name__": True}
    ratio = one("bandwatch_expectation_ratio", ALL)
    link = [{"title": "details", "url": "/d/bandwatch-target?var-target=${__data.fields.target}"}]
    served = f"sum by (target) ({rate('bandwatch_probe_runs_total', ALL + ',' + eq('outcome', 'ok'))})"
    return dashboard(
        "bandwatch-overview",
        "Bandwatch: overview",
        [
            panel(
                "Below expectation",
                "stat",
                (f"count({one('bandwatch_verdict', eq('state', 'below_expectation'))} == 1) or vector(0)", "targets"),
                wide=4,
                high=4,
                defaults=TROUBLE,
            ),
            panel(
                "Unavailable",
                "stat",
                (f"count({one('bandwatch_verdict', eq('state', 'unavailable'))} == 1) or vector(0)", "targets"),
                wide=4,
                high=4,
                defaults=TROUBLE,
            ),
            panel(
                "Open incidents", "stat", (one("bandwatch_incidents_open"), "{{severity}}"), wide=4, high=4, defaults=TROUBLE
            ),
            panel("Targets", "stat", (f"count({one('bandwatch_target_info')}) or vector(0)", "targets"), wide=4, high=4),
            panel(
                "Last walk of the schedule",
                "stat",
                ("time() - max(bandwatch_scheduler_last_tick_timestamp_seconds)", "ago"),
                unit="s",
                wide=4,
                high=4,
                defaults=steps((None, "green"), (10, "red")),
            ),
            panel(
                "Oldest undelivered alert",
                "stat",
                ("max(bandwatch_outbox_oldest_pending_seconds) or vector(0)", "age"),
                unit="s",
                wide=4,
                high=4,
                defaults=steps((None, "green"), (60, "orange"), (600, "red")),
            ),
            panel(
                "Leaderboard",
                "table",
                (f"max by (target) ({ratio})", ""),
                (f"max by (target) ({quantile(0.5, 'bandwatch_output_tokens_per_second', ALL)})", ""),
                (f"max by (target) ({one('bandwatch_expected_tokens_per_second', ANY)})", ""),
                (f"max by (target) ({one('bandwatch_ceiling_tokens_per_second', ANY)})", ""),
                (f"max by (target) ({quantile(0.5, 'bandwatch_time_to_first_token_seconds', ALL)})", ""),
                (f"max by (target) ({served} / sum by (target) ({rate('bandwatch_probe_runs_total', ALL)}))", ""),
                wide=24,
                high=10,
                transformations=[
                    {"id": "merge", "options": {}},
                    {
                        "id": "organize",
                        "options": {
                            "excludeByName": hide,
                            "renameByName": {
                                "Value #A": "R",
                                "Value #B": "tokens/s p50",
                                "Value #C": "expected",
                                "Value #D": "ceiling",
                                "Value #E": "TTFT p50",
                                "Value #F": "served",
                            },
                        },
                    },
                ],
                overrides=[
                    {"matcher": {"id": "byName", "options": "target"}, "properties": [{"id": "links", "value": link}]},
                    {
                        "matcher": {"id": "byName", "options": "R"},
                        "properties": [
                            {"id": "decimals", "value": 2},
                            {"id": "thresholds", "value": RATIO["thresholds"]},
                            {"id": "custom.cellOptions", "value": {"type": "color-background", "mode": "basic"}},
                        ],
                    },
                    {"matcher": {"id": "byName", "options": "TTFT p50"}, "properties": [{"id": "unit", "value": "s"}]},
                    {"matcher": {"id": "byName", "options": "served"}, "properties": [{"id": "unit", "value": "percentunit"}]},
                ],
            ),
            panel(
                "R: observed / expected",
                "timeseries",
                (ratio, "{{target}} {{location}}"),
                defaults={**RATIO, "custom": LINES, "min": 0},
            ),
            panel(
                "Decode speed, median",
                "timeseries",
                (quantile(0.5, "bandwatch_output_tokens_per_second", ALL), "{{target}}"),
                unit="short",
                defaults={"min": 0},
            ),
            panel(
                "Time to first token, median",
                "timeseries",
                (quantile(0.5, "bandwatch_time_to_first_token_seconds", ALL), "{{target}}"),
                unit="s",
                defaults={"min": 0},
            ),
            panel(
                "Time to first token, p95",
                "timeseries",
                (quantile(0.95, "bandwatch_time_to_first_token_seconds", ALL), "{{target}}"),
                unit="s",
                defaults={"min": 0},
            ),
            panel(
                "Outcomes other than ok, per minute",
                "timeseries",
                (
                    f"60 * sum by (target, outcome) ({rate('bandwatch_probe_runs_total', ALL + NOT_OK)})",
                    "{{target}} {{outcome}}",
                ),
                defaults={"min": 0},
            ),
            panel(
                "Tokens per minute",
                "timeseries",
                (f"60 * sum by (target, direction) ({rate('bandwatch_probe_tokens_total', ANY)})", "{{target}} {{direction}}"),
                defaults={"min": 0},
            ),
            panel(
                "Schedule, ticks per minute",
                "timeseries",
                (f"60 * sum by (result) ({rate('bandwatch_scheduler_ticks_total')})", "{{result}}"),
                wide=8,
                defaults={"min": 0},
            ),
            panel(
                "Own lag",
                "timeseries",
                ("max(bandwatch_event_loop_lag_seconds)", "event loop"),
                ("max(bandwatch_scheduler_lateness_seconds)", "start of probes"),
                ("max(bandwatch_queue_oldest_seconds)", "queue"),
                unit="s",
                wide=8,
                defaults={"min": 0},
            ),
            panel(
                "Alerts, per minute",
                "timeseries",
                (f"60 * sum by (channel, result) ({rate('bandwatch_notifications_total')})", "{{channel}} {{result}}"),
                wide=8,
                defaults={"min": 0},
            ),
        ],
        several=True,
    )


def target() -> Json:
    speed, first = "bandwatch_output_tokens_per_second", "bandwatch_time_to_first_token_seconds"
    phases = (
        "histogram_quantile(0.5, sum by (phase, connection, le) (" + rate("bandwatch_probe_phase_seconds_bucket", ONE) + "))"
    )
    heat = {"calculate": False, "yAxis": {"unit": "s"}, "color": {"scheme": "Oranges"}}
    return dashboard(
        "bandwatch-target",
        "Bandwatch: target",
        [
            panel(
                "Verdict",
                "stat",
                (f"{one('bandwatch_verdict', ONE)} == 1", "{{state}}"),
                wide=6,
                high=4,
                options={"textMode": "name"},
            ),
            panel(
                "R",
                "stat",
                (one("bandwatch_expectation_ratio", ONE), "{{location}}"),
                wide=4,
                high=4,
                defaults={**RATIO, "decimals": 2},
            ),
            panel(
                "Of the ceiling",
                "stat",
                (one("bandwatch_ceiling_ratio", ONE), "{{location}}"),
                unit="percentunit",
                wide=4,
                high=4,
                defaults=steps((None, "green"), (1, "orange")),
            ),
            panel("Tokens per second", "stat", (quantile(0.5, speed, ONE), "p50"), wide=4, high=4),
            panel(
                "Last success",
                "stat",
                (f"time() - {one('bandwatch_target_last_success_timestamp_seconds', ONE)}", "{{location}}"),
                unit="s",
                wide=6,
                high=4,
            ),
            panel(
                "Decode speed against physics",
                "timeseries",
                (quantile(0.5, speed, ONE, "location"), "p50 {{location}}"),
                (quantile(0.1, speed, ONE, "location"), "p10 {{location}}"),
                (one("bandwatch_expected_tokens_per_second", OWN), "expected"),
                (one("bandwatch_ceiling_tokens_per_second", OWN), "ceiling"),
                wide=24,
                high=9,
                defaults={"min": 0},
            ),
            panel(
                "Time to first token",
                "timeseries",
                *((quantile(q, first, ONE, "location"), f"p{int(q * 100)} {{{{location}}}}") for q in (0.5, 0.9, 0.95)),
                unit="s",
                defaults={"min": 0},
            ),
            panel(
                "Time to first token, all of it",
                "heatmap",
                (f"sum by (le) ({rate(first + '_bucket', ONE)})", "{{le}}"),
                unit="s",
                options=heat,
            ),
            panel("Phases, median", "timeseries", (phases, "{{phase}} {{connection}}"), unit="s", defaults={"min": 0}),
            panel(
                "Time per output token",
                "timeseries",
                *(
                    (
                        quantile(q, "bandwatch_time_per_output_token_seconds", ONE, "location"),
                        f"p{int(q * 100)} {{{{location}}}}",
                    )
                    for q in (0.5, 0.95)
                ),
                unit="s",
                defaults={"min": 0},
            ),
            panel(
                "Longest gap of the last probe",
                "timeseries",
                (one("bandwatch_probe_max_gap_seconds", ONE), "{{location}}"),
                unit="s",
                defaults={"min": 0},
            ),
            panel(
                "Duration of a probe",
                "timeseries",
                (quantile(0.5, "bandwatch_probe_duration_seconds", ONE, "location"), "p50 {{location}}"),
                (one("bandwatch_target_interval_seconds", OWN), "interval"),
                unit="s",
                defaults={"min": 0},
            ),
            panel(
                "Outcomes per minute",
                "timeseries",
                (f"60 * sum by (outcome) ({rate('bandwatch_probe_runs_total', ONE)})", "{{outcome}}"),
                defaults={"min": 0},
            ),
            panel(
                "Cost per day",
                "timeseries",
                (f"86400 * sum({rate('bandwatch_probe_cost_usd_total', OWN)})", "USD"),
                unit="currencyUSD",
                defaults={"min": 0},
            ),
        ],
        several=False,
    )


def files() -> dict[str, str]:
    """File name -> its text."""
    made = {"overview.json": overview(), "target.json": target()}
    return {name: json.dumps(each, indent=1, sort_keys=True) + "\n" for name, each in made.items()}


if __name__ == "__main__":
    for name, text in files().items():
        (FOLDER / name).write_text(text)
        print(f"deploy/grafana/dashboards/{name}")
