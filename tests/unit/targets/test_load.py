"""A config file is read whole: it is right, or everything wrong with it is said at once."""

import re
from datetime import time
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from app.errors import ConfigError, NotFoundError
from app.targets.load import load_channel, load_config, load_target
from app.targets.model import ChannelKind, Connection, Deadlines, SecretRef, SecretSource, Thresholds
from app.targets.recipes import BUILTIN
from app.targets.schema import FileIn

EXAMPLE = Path(__file__).parents[3] / "bandwatch.example.yaml"

CONTRACT = """
providers:
  groq:
    base_url: https://api.groq.com/openai/v1
    api_key: ${env:GROQ_API_KEY}          # or ${file:/run/secrets/groq}; resolved when used, never stored or shown
    max_concurrency: 2
    budget: {tokens_per_day: 200000, usd_per_day: 1.5}
targets:
  - name: groq/gpt-oss-120b
    provider: groq
    model: openai/gpt-oss-120b
    every: 60s
    recipe: chat-short
    locations: [default]
    deployment: {model_spec: openai/gpt-oss-120b, hardware: groq-lpu-v1, devices: 576, quantization: mxfp4, speculation: unknown}
    slo: {ttft_p95: 500ms, tps_p50: 300}
channels:
  ops: {kind: webhook, url: https://hooks.example.net/bandwatch, secret: ${env:BANDWATCH_WEBHOOK_SECRET}}
  am:  {kind: alertmanager, urls: [http://alertmanager:9093]}
  chat: {kind: apprise, url: ${env:APPRISE_URL}}
routes:
  - {match: {severity: critical}, channels: [ops, am]}
  - {channels: [am]}
maintenance:
  - {match: {provider: groq}, every: weekly, weekday: sun, from: "02:00", to: "03:00", time_zone: Europe/Berlin}
retention: {runs: 30d, rollup_5m: 90d, rollup_1h: 2y}
"""

ONE = "providers: {p: {base_url: 'https://p.example/v1'}}\n"


def problems_of(text: str, **options: object) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load_config(text, file="b.yaml", **options)
    return [str(problem) for problem in caught.value.problems]


def test_the_published_example_is_read_as_it_says() -> None:
    config = load_config(CONTRACT)
    (target,) = config.targets
    assert target.provider.api_key == SecretRef(source=SecretSource.ENV, name="GROQ_API_KEY")
    assert (target.every_s, target.recipe, target.origin) == (60.0, BUILTIN["chat-short"], "file")
    assert target.deployment is not None
    assert (target.deployment.devices, target.deployment.batch, target.deployment.bits) == (576, 1, None)
    assert target.slo is not None
    assert (target.slo.ttft_p95_s, target.slo.tps_p50) == (0.5, 300.0)
    assert config.channels["ops"].secrets == (SecretRef(source=SecretSource.ENV, name="BANDWATCH_WEBHOOK_SECRET"),)
    assert config.channels["am"].urls == ("http://alertmanager:9093",)
    assert config.channels["chat"].urls == (SecretRef(source=SecretSource.ENV, name="APPRISE_URL"),)
    assert config.routes[0].match.severity == "critical"
    assert config.routes[1].channels == ("am",)
    (window,) = config.maintenance
    assert (window.weekday, window.start, window.to) == (6, time(2), time(3))
    assert config.retention.rollup_1h_s == 2 * 365 * 86400
    assert config.thresholds == Thresholds()


def test_the_example_file_in_the_repository_is_right() -> None:
    config = load_config(EXAMPLE.read_text(encoding="utf-8"))
    assert {target.provider.name for target in config.targets} == {"groq", "cerebras", "own-vllm"}


def test_an_empty_file_is_an_empty_configuration() -> None:
    assert load_config("# nothing yet\n").targets == ()
    assert load_config("targets:\nproviders:\nroutes:\n").targets == ()


def test_everything_wrong_is_said_at_once_each_with_file_line_and_field() -> None:
    text = """\
providers:
  groq: {base_url: api.groq.com, api_key: gsk_canary_canary_canary, max_concurency: 2}
  "bad name": {base_url: https://x.example}
targets:
  - {name: a/runs, provider: grok, model: m, every: 60}
  - name: b
    provider: groq
    every: 10s
    recipe: chat-shrt
    deadlines: {total: 20s}
    locations: [fra, fra]
  - {name: b, provider: groq, model: ""}
channels:
  ops: {kind: webhok, url: https://hooks.example, secret: whsec_canarycanarycanary}
  am: {kind: alertmanager}
routes:
  - {match: {severity: urgent, target: "a[0-9]+"}, channels: [opps]}
maintenance:
  - {every: weekly, from: "25:00", to: "03:00", time_zone: Mars/Olympus, match: {provider: nobody}}
retention: {runs: 1h}
thresholds: {red_below: 0.7, open_on: 4}
allow_networks: [10.0.0.1/8]
threshholds: {}
"""
    found = problems_of(text)
    expected = [
        "b.yaml:2: providers.groq.api_key: must be a reference, ${env:NAME} or ${file:/path}; a secret itself may not stand in the file",
        "b.yaml:2: providers.groq.base_url: must be a URL that starts with http:// or https://",
        "b.yaml:2: providers.groq.max_concurency: unknown key; did you mean 'max_concurrency'?",
        "b.yaml:3: providers.bad name: must be 1 to 63 letters, digits, '.', '_' or '-', and start with a letter or digit",
        "b.yaml:5: targets.0.every: must be a duration with its unit, like 500ms, 60s, 5m, 2h or 30d",
        "b.yaml:5: targets.0.name: no segment of a name may be 'runs', which is a word of the REST interface",
        "b.yaml:5: targets.0.provider: unknown provider 'grok'; did you mean 'groq'?",
        "b.yaml:6: targets.1.model: is required",
        "b.yaml:9: targets.1.recipe: unknown recipe 'chat-shrt'; did you mean 'chat-short'?",
        "b.yaml:10: targets.1.deadlines.total: total of 20 s cannot end within the interval of 'b', 10 s",
        "b.yaml:11: targets.1.locations.1: 'fra' is given twice",
        "b.yaml:12: targets.2.model: must have at least 1 character",
        "b.yaml:12: targets.2.name: 'b' is the name of targets.1 too",
        "b.yaml:14: channels.ops.kind: must be 'webhook', 'alertmanager' or 'apprise'",
        "b.yaml:14: channels.ops.secret.0: must be a reference, ${env:NAME} or ${file:/path}; a secret itself may not stand in the file",
        "b.yaml:15: channels.am: url is required",
        "b.yaml:17: routes.0.channels.0: unknown channel 'opps'; did you mean 'ops'?",
        "b.yaml:17: routes.0.match.severity: must be 'warning' or 'critical'",
        "b.yaml:17: routes.0.match.target: must be a name or a glob; a glob knows only * and ?, it is no regular expression",
        'b.yaml:19: maintenance.0.from: must be a time of day such as "02:00"',
        "b.yaml:19: maintenance.0.match.provider: unknown provider 'nobody'",
        "b.yaml:19: maintenance.0.time_zone: is no IANA time zone; write it like Europe/Berlin or UTC",
        "b.yaml:19: maintenance.0.weekday: is required for a weekly window",
        "b.yaml:20: retention.runs: must be greater than or equal to 86400",
        "b.yaml:21: thresholds.amber_below: must not be lower than red_below",
        "b.yaml:21: thresholds.open_on: must not be more than windows",
        "b.yaml:22: allow_networks.0: must be a network such as 10.1.0.0/16 or fd00::/8, with no bits set behind its prefix",
        "b.yaml:23: threshholds: unknown key; did you mean 'thresholds'?",
    ]
    assert found == expected
    assert "canary" not in "".join(found)


def test_secrets_may_only_be_references_and_only_where_they_are_resolved() -> None:
    text = (
        ONE
        + "targets: [{name: a, provider: p, model: '${env:MODEL}'}]\nchannels: {c: {kind: webhook, url: 'https://x.example/${env:T}'}}\n"
    )
    assert problems_of(text) == [
        "b.yaml:2: targets.0.model: a reference is resolved only in api_key, secret and the url of a channel",
        "b.yaml:3: channels.c.url: must be a reference, ${env:NAME} or ${file:/path}; a secret itself may not stand in the file",
    ]


def test_secrets_rotate_as_a_list() -> None:
    text = "channels: {c: {kind: webhook, url: 'https://x.example', secret: ['${env:NEW}', '${file:/run/old}']}}"
    assert [str(secret) for secret in load_config(text).channels["c"].secrets] == ["${env:NEW}", "${file:/run/old}"]


def test_deadlines_not_stated_end_before_the_next_probe() -> None:
    text = ONE + "targets:\n" + "".join(f"  - {{name: t{s}, provider: p, model: m, every: {s}s}}\n" for s in (1, 5, 60, 600))
    deadlines = [target.deadlines for target in load_config(text).targets]
    assert [d.total_s for d in deadlines] == [0.9, 4.5, 59.0, 300.0]
    assert all(max(d.connect_s, d.first_token_s, d.stall_s) <= d.total_s for d in deadlines)
    assert deadlines[-1] == Deadlines()


def test_deadlines_of_the_file_hold_for_every_target_that_states_none() -> None:
    text = (
        ONE
        + "deadlines: {total: 20s, stall: 5s}\ntargets:\n  - {name: a, provider: p, model: m}\n  - {name: b, provider: p, model: m, deadlines: {total: 30s}}\n"
    )
    first, second = load_config(text).targets
    assert (first.deadlines.total_s, first.deadlines.stall_s, first.deadlines.first_token_s) == (20.0, 5.0, 20.0)
    assert (second.deadlines.total_s, second.deadlines.stall_s) == (30.0, 5.0)
    assert (
        "deadlines.total: total of 20 s cannot end within the interval of 'a', 10 s"
        in problems_of(text.replace("model: m}", "model: m, every: 10s}", 1))[0]
    )


def test_own_recipes_join_the_built_in_ones_and_cannot_change_them() -> None:
    config = load_config(
        ONE
        + "recipes: {mine: {prompt: code, output_tokens: 256}}\ntargets: [{name: a, provider: p, model: m, recipe: mine, connection: warm}]\n"
    )
    assert config.targets[0].recipe.output_tokens == 256
    assert config.targets[0].connection is Connection.WARM
    assert set(BUILTIN) < set(config.recipes)
    assert "is built in and fixed" in problems_of("recipes: {prose: {output_tokens: 5}}")[0]


@pytest.mark.parametrize(
    ("channel", "words"),
    [
        ("{kind: webhook, url: 'https://u:canary@x.example'}", "must not hold credentials"),
        ("{kind: webhook, url: 'ftp://x.example'}", "starts with http:// or https://"),
        ("{kind: webhook, urls: ['https://a.example', 'https://b.example']}", "a webhook has one url"),
        ("{kind: webhook, url: 'https://a.example', urls: ['https://b.example']}", "give url or urls, not both"),
        ("{kind: webhook, url: 5}", "must be a URL, or a reference"),
        ("{kind: webhook, url: 'http://[::1'}", "is no URL that can be read"),
        ("{kind: alertmanager, url: 'http://a.example', secret: '${env:S}'}", "secret is for webhooks"),
        ("{kind: apprise, url: nothing}", "must be an Apprise URL"),
    ],
)
def test_a_channel_that_leads_nowhere_is_refused(channel: str, words: str) -> None:
    (found,) = problems_of(f"channels: {{c: {channel}}}")
    assert words in found
    assert "canary" not in found


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("base_url: 'https://x.example/v1/chat/completions'", "must end before /chat/completions"),
        ("base_url: 'https://x.example/v1?key=canary'", "must not have a query"),
        ("base_url: 'https://x.example/v1', headers: {x-api-key: canary}", "'x-api-key' holds a secret"),
        ('base_url: "https://x.example/v1", headers: {x-note: "a\\nb"}', "printable ASCII"),
        ("base_url: 'https://x.example/v1', budget: 5", "must be a mapping"),
        ("base_url: 'https://x.example/v1', max_concurrency: 0", "greater than or equal to 1"),
        ("base_url: 'https://x.example/v1', api_key: '${file:relative}'", "must be a reference"),
    ],
)
def test_a_provider_that_cannot_work_is_refused(line: str, words: str) -> None:
    (found,) = problems_of(f"providers: {{p: {{{line}}}}}")
    assert words in found
    assert "canary" not in found


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[1, 2]", "must be a mapping"),
        ("targets: {a: 1}", "must be a list"),
        ("providers: [a]", "must be a mapping"),
        ("deadlines: {stall: -3s}", "is not a duration"),
        ("deadlines: {stall: 0s}", "must be longer than nothing"),
        ("maintenance: [{every: daily, weekday: mon, from: '1:00', to: '2:00'}]", "makes no sense for a daily window"),
        ("maintenance: [{every: weekly, weekday: noday, from: '1:00', to: '2:00'}]", "must be one of mon, tue"),
        ("maintenance: [{every: daily, from: '1:00', to: '01:00'}]", "must differ from 'from'"),
        ("thresholds: {close_on: 2}", "must be less than open_on"),
        ("thresholds: {window: 30}", "must be a duration"),
        (ONE + "targets: [{name: a, provider: p, model: m, deployment: {speculation: 'yes'}}]", "must be unknown, off, on"),
        (ONE + "targets: [{name: a, provider: p, model: m, deployment: {speculation: '0.7,x'}}]", "must be unknown, off, on"),
        (ONE + "targets: [{name: a, provider: p, model: m, deployment: {bits: 64}}]", "less than or equal to 32"),
        (ONE + "targets: [{name: a//b, provider: p, model: m}]", "must be segments"),
        (ONE + "targets: [{name: a, provider: p, model: m, every: 100ms}]", "greater than or equal to 1"),
        (ONE + "targets: [{name: a, provider: p, model: m, locations: []}]", "at least 1 item"),
    ],
)
def test_senseless_values_are_refused_in_words(text: str, words: str) -> None:
    (found,) = problems_of(text)
    assert words in found


@pytest.mark.parametrize("value", ["off", "on", "unknown", "0.7,4", "0.7,4,0.05"])
def test_speculation_is_written_in_five_ways(value: str) -> None:
    text = ONE + f"targets: [{{name: a, provider: p, model: m, deployment: {{speculation: '{value}'}}}}]"
    (target,) = load_config(text).targets
    assert target.deployment is not None
    assert target.deployment.speculation == value
    if value in {"off", "on"}:
        assert load_config(text.replace("'off'", "off").replace("'on'", "on")).targets[0].deployment == target.deployment


def test_routes_match_targets_by_name_or_glob() -> None:
    text = "channels: {c: {kind: alertmanager, url: 'http://a.example'}}\nroutes: [{match: {target: 'groq/*'}, channels: [c]}]"
    assert load_config(text).routes[0].match.target == "groq/*"


def test_weekdays_have_two_names() -> None:
    text = "maintenance: [{every: weekly, weekday: Sunday, from: 1:00, to: 2:00}]"
    assert load_config(text).maintenance[0].weekday == 6


class _Catalogue:
    """Knows one of each."""

    def model(self, text: str, /) -> object:
        return self._known(text, "llama")

    def hardware_of(self, text: str, /) -> object:
        return self._known(text, "H100")

    def quantization(self, text: str, /) -> object:
        return self._known(text, "FP8")

    @staticmethod
    def _known(text: str, one: str) -> object:
        if text != one:
            raise NotFoundError(f"unknown id '{text}'", near=(one,))
        return one


def test_deployments_name_only_what_the_catalogue_knows() -> None:
    text = (
        ONE
        + "targets:\n  - name: a\n    provider: p\n    model: m\n    deployment:\n      model_spec: llama\n      hardware: H10\n      quantization: FP9\n"
    )
    assert problems_of(text, catalogue=_Catalogue()) == [
        "b.yaml:8: targets.0.deployment.hardware: unknown id 'H10'; did you mean H100?",
        "b.yaml:9: targets.0.deployment.quantization: unknown id 'FP9'; did you mean FP8?",
    ]


def test_unknown_keys_are_found_at_every_depth() -> None:
    target = "{name: a, provider: p, model: m, slo: {tps_p5O: 3}, deployment: {hardwear: x}, every: {a: {b: 1}}}"
    assert problems_of(f"{ONE}targets: [{target}]\nroutes: [{{channels: [], match: {{sevrity: x}}}}]") == [
        "b.yaml:2: targets.0.deployment.hardwear: unknown key; did you mean 'hardware'?",
        "b.yaml:2: targets.0.every: must be a duration with its unit, like 500ms, 60s, 5m, 2h or 30d",
        "b.yaml:2: targets.0.slo.tps_p5O: unknown key; did you mean 'tps_p50'?",
        "b.yaml:3: routes.0.channels: must have at least 1 item",
        "b.yaml:3: routes.0.match.sevrity: unknown key; did you mean 'severity'?",
    ]


def test_things_of_the_wrong_kind_are_problems_and_no_crash() -> None:
    text = "providers: 5\ntargets: [7, {name: 5, provider: [], model: {}, locations: [1], every: soon, recipe: 1}]\nroutes: [{channels: [1]}, x]\n"
    assert {found.split(": ")[1] for found in problems_of(text)} == {
        "providers", "targets.0", "targets.1.name", "targets.1.provider", "targets.1.model", "targets.1.locations.0",
        "targets.1.every", "targets.1.recipe", "routes.0.channels.0", "routes.1",
    }  # fmt: skip


def test_text_that_is_no_yaml_is_one_problem() -> None:
    (found,) = problems_of("targets: [\n")
    assert found.startswith("b.yaml:2: not valid YAML")


def test_harmless_headers_are_sent_along() -> None:
    config = load_config("providers: {p: {base_url: 'https://p.example/', headers: {x-title: bandwatch}}}")
    assert config.providers["p"].headers == {"x-title": "bandwatch"}
    assert config.providers["p"].base_url == "https://p.example"


def test_a_target_made_by_the_api_obeys_the_same_rules() -> None:
    config = load_config(CONTRACT)
    target = load_target({"name": "new", "provider": "groq", "model": "m", "every": "30s"}, config=config)
    assert (target.origin, target.provider, target.every_s) == ("api", config.providers["groq"], 30.0)
    with pytest.raises(ConfigError) as caught:
        load_target({"name": "new", "provider": "grok", "model": "m", "recipe": "x", "every": "5s", "deadlines": {"total": "9s"},
                     "deployment": {"hardware": "H10"}}, config=config, catalogue=_Catalogue())  # fmt: skip
    assert {problem.field for problem in caught.value.problems} == {
        "provider",
        "recipe",
        "deadlines.total",
        "deployment.hardware",
    }
    with pytest.raises(ConfigError) as caught:
        load_target({"name": "x", "every": 5, "model": "${env:X}"}, config=config)
    assert {problem.field for problem in caught.value.problems} == {"provider", "every", "model"}


def test_a_channel_made_by_the_api_obeys_the_same_rules() -> None:
    channel = load_channel("c", {"kind": "webhook", "url": "https://x.example", "secret": "${env:S}"})
    assert (channel.kind, channel.origin) == (ChannelKind.WEBHOOK, "api")
    with pytest.raises(ConfigError):
        load_channel("c", {"kind": "webhook", "secret": "plain"})


def test_two_hundred_targets_load_in_no_time() -> None:
    """Bounded by work, not by a clock: one look at each node."""
    text = (
        ONE
        + "targets:\n"
        + "".join(f"  - {{name: t{i}, provider: p, model: m, deployment: {{devices: {i + 1}}}}}\n" for i in range(200))
    )
    assert len(load_config(text).targets) == 200


def test_every_key_is_documented() -> None:
    docs = (EXAMPLE.parent / "docs" / "config.md").read_text(encoding="utf-8")

    def keys(section: type[BaseModel]) -> set[str]:
        found = set()
        for name, info in section.model_fields.items():
            found.add(info.alias or name)
            for inner in sections(info.annotation):
                found |= keys(inner)
        return found

    def sections(kind: Any) -> list[type[BaseModel]]:
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            return [kind]
        return [section for part in get_args(kind) for section in sections(part)]

    known = keys(FileIn)
    assert {"base_url", "ttft_p95", "open_on", "weekday", "kv_bits", "paired"} <= known
    assert {key for key in known if not re.search(rf"[`.]{key}\b", docs)} == set()
