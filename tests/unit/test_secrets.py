"""A secret is usable or refused by name, and no text that leaves still holds it."""

import json
from pathlib import Path

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from app.errors import SecretError
from app.secrets import MASK, MAX_BYTES, Redactor, Secrets, resolve
from app.targets.model import SecretRef, SecretSource

CANARY = "canary-7f3a9b2c5d8e1f40"


def env(name: str = "KEY") -> SecretRef:
    return SecretRef(source=SecretSource.ENV, name=name)


def in_file(path: Path) -> SecretRef:
    return SecretRef(source=SecretSource.FILE, name=str(path))


def test_surrounding_white_space_is_no_part_of_a_key(tmp_path: Path) -> None:
    """A trailing line feed would fail inside the HTTP client, with the key in the exception's text."""
    (tmp_path / "key").write_text(f" {CANARY}\r\n")
    assert resolve(in_file(tmp_path / "key")) == CANARY
    assert resolve(env(), environ={"KEY": f"{CANARY}\n"}) == CANARY


@pytest.mark.parametrize("value", ["", " \n", f"{CANARY}\nx", f"{CANARY}\x00", f"{CANARY}é", f"{CANARY}\tx", f"{CANARY}\x7f"])
def test_what_cannot_stand_in_a_header_is_refused_by_name_and_never_shown(value: str) -> None:
    with pytest.raises(SecretError) as caught:
        resolve(env(), environ={"KEY": value})
    assert "${env:KEY}" in str(caught.value)
    assert CANARY not in str(caught.value)
    assert caught.value.exit_code == 2


def test_a_secret_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SecretError, match=r"\$\{env:KEY\} is not set"):
        resolve(env(), environ={})
    with pytest.raises(SecretError, match="cannot be read: No such file"):
        resolve(in_file(tmp_path / "nothing"))
    with pytest.raises(SecretError, match="cannot be read: Is a directory"):
        resolve(in_file(tmp_path))
    (tmp_path / "long").write_text("x" * (MAX_BYTES + 1))
    with pytest.raises(SecretError, match="longer than"):
        resolve(in_file(tmp_path / "long"))


def test_rotation_needs_no_restart(tmp_path: Path) -> None:
    path = tmp_path / "key"
    secrets = Secrets(redactor := Redactor())
    for value in ("first-secret-value", "second-secret-value"):
        path.write_text(value)
        assert secrets.resolve(in_file(path)) == value
    assert redactor.clean("first-secret-value second-secret-value") == f"{MASK} {MASK}"


def test_the_environment_is_the_process_unless_another_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", CANARY)
    assert resolve(env()) == CANARY
    assert Secrets(Redactor(), environ={"KEY": "other-value"}).resolve(env()) == "other-value"


@pytest.mark.parametrize(
    "text",
    [
        f"https://api.example/v1/chat?api_key={CANARY}&x=1",
        f"Illegal header value b'Bearer {CANARY}\\n'",
        f"{{'x-api-key': '{CANARY}'}}",
        f'{{"error": {{"message": "Incorrect API key provided: {CANARY}"}}}}',
        f"https://user:{CANARY}@host/path",
        f"Location: https://evil.example/?k={CANARY}",
        "prefix%2F" + CANARY,
    ],
)
def test_every_way_that_keys_have_leaked_is_closed(text: str) -> None:
    assert CANARY not in Redactor([CANARY]).clean(text)


@pytest.mark.parametrize(
    "text",
    [
        "Incorrect API key provided: sk-proj-abcdefghijklmnop1234.",
        "key gsk_ABCDEFGHIJKLMNOPqrst is wrong",
        "csk-abcdefgh12345678 and xai-abcdefgh12345678",
        "Authorization: Bearer abcdef0123456789",
        "proxy said: Basic dXNlcjpwYXNzd29yZA==",
        "x-api-key: abcdef0123456789",
        '{"api_key": "abcdef0123456789"}',
        "password=abcdef0123456789;",
        "postgresql://bandwatch:abcdef0123456789@db/x",
        "https://api.example/v1?abcdef0123456789",
        "whsec_abcdef0123456789ABCDEF",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhYmNkZWYwMTIzNDU2Nzg5In0.abcdef0123456789",
    ],
)
def test_what_looks_like_a_secret_is_masked_without_being_known(text: str) -> None:
    cleaned = Redactor().clean(text)
    assert MASK in cleaned or cleaned.endswith("?…")
    assert "abcdef" not in cleaned
    assert "ABCDEF" not in cleaned


@pytest.mark.parametrize(
    "text",
    [
        "429 Too Many Requests: slow down, 30000 tokens per minute",
        "the secret ${env:GROQ_API_KEY} is not set",
        "providers.groq.api_key: must be a reference, ${env:NAME} or ${file:/path}",
        "https://api.groq.com/openai/v1/chat/completions",
        "model meta-llama/Llama-3.1-8B-Instruct at 203 ms",
        "token_source usage, completion_tokens: 128",
    ],
)
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert Redactor([CANARY]).clean(text) == text


def test_values_with_special_characters_are_found_in_all_their_spellings() -> None:
    value = 'p@ss/w"rd\\12%'
    redactor = Redactor([value])
    for spelling in (value, "p%40ss%2Fw%22rd%5C12%25", json.dumps(value)):
        assert "12" not in redactor.clean(f"x {spelling} y")


def test_the_password_of_a_database_url_is_learnt() -> None:
    redactor = Redactor()
    redactor.learn_url(f"postgresql://u:{CANARY}@h/db")
    redactor.learn_url("postgresql://h/db")
    redactor.learn_url("http://[::1")
    assert redactor.clean(f'FATAL: password "{CANARY}"') == f'FATAL: password "{MASK}"'


def test_a_password_is_learnt_as_it_is_written_and_as_it_is_meant_wherever_it_stands_in_the_url() -> None:
    redactor = Redactor()
    redactor.learn_url("postgresql://u:can%40ry-1@h/db?sslmode=require&password=can%2Fry-2")
    for spelling in ("can%40ry-1", "can@ry-1", "can%2Fry-2", "can/ry-2"):
        assert redactor.clean(f"FATAL: {spelling} is wrong") == f"FATAL: {MASK} is wrong"
    assert redactor.clean("sslmode is require") == "sslmode is require"


def test_a_secret_url_is_masked_in_every_piece_that_may_be_a_token() -> None:
    redactor = Redactor()
    secrets = Secrets(
        redactor, environ={"CHAT": "https://u:se%2Fsame@hooks.example/services/T0000ABC/B1/abcdefghijklmnopqrst?t=tok3nnnn"}
    )
    secrets.resolve(SecretRef(source=SecretSource.ENV, name="CHAT"))
    said = "POST /services/T0000ABC/B1/abcdefghijklmnopqrst tok3nnnn se/same se%2Fsame"
    assert redactor.clean(said) == f"POST /services/{MASK}/B1/{MASK} {MASK} {MASK} {MASK}"


def test_a_variable_that_is_called_a_secret_is_learnt_unless_it_may_be_a_word() -> None:
    redactor = Redactor()
    redactor.learn_named("GROQ_API_KEY", CANARY)
    redactor.learn_named("POSTGRES_PASSWORD", "bandwatch")
    redactor.learn_named("HOSTNAME", "a-rather-long-host-name")
    redactor.learn_named("BANDWATCH_DATABASE_URL", "postgresql://u:sesame@h/db")
    text = f"{CANARY} sesame bandwatch a-rather-long-host-name"
    assert redactor.clean(text) == f"{MASK} {MASK} bandwatch a-rather-long-host-name"


@pytest.mark.parametrize("piece", ["a", "a.", "eyJ-", "http://", "https://a:", "x-api-key: ", "sk-", "bearer ", '"'])
def test_hostile_text_is_cleaned_in_time_that_grows_with_its_length(piece: str) -> None:
    """Would take minutes, were a pattern quadratic; the suite's time-out is the judge."""
    Redactor([CANARY]).clean(piece * (200_000 // len(piece)))


def test_short_values_do_not_tear_holes_into_text() -> None:
    assert Redactor(["a", " of "]).clean("a cat of a sort") == "a cat of a sort"


def test_a_log_event_holds_no_secret_anywhere() -> None:
    redactor = Redactor([CANARY])
    log = structlog.wrap_logger(
        structlog.ReturnLogger(),
        processors=[structlog.processors.format_exc_info, redactor, structlog.processors.JSONRenderer()],
    )
    try:
        int(f"Bearer {CANARY}")
    except ValueError as error:
        line = log.exception(
            "probe failed",
            error=error,
            headers={"x-api-key": CANARY, "accept": "json", CANARY: 1},
            body=CANARY.encode(),
            nested=[{"deep": (CANARY, 5, None, True)}],
            path=Path(f"/tmp/{CANARY}"),
            api_key="unknown-but-named",
            secret=env(),
            token=None,
            output_tokens=128,
        )
    assert CANARY not in line
    event = json.loads(line)
    assert event["api_key"] == MASK
    assert event["secret"] == "${env:KEY}"
    assert (event["token"], event["output_tokens"]) == (None, 128)
    assert event["nested"] == [{"deep": [MASK, 5, None, True]}]


@given(st.text(max_size=200), st.text(alphabet="abcdefghijklmnopqrstuvwxyz0123456789-_/+=.", min_size=8, max_size=60))
def test_a_known_value_never_survives_whatever_is_around_it(around: str, secret: str) -> None:
    cleaned = Redactor([secret]).clean(around + secret + around)
    assert secret not in cleaned.replace(MASK, "") or secret in around.replace(secret, "")


@given(st.text(max_size=300))
def test_cleaning_twice_changes_nothing_more(text: str) -> None:
    redactor = Redactor([CANARY])
    assert redactor.clean(redactor.clean(text)) == redactor.clean(text)
