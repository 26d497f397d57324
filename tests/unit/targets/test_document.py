"""YAML becomes plain data that knows its lines, without YAML 1.1's surprises."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.targets import document as module
from app.targets.document import read_document


def test_scalars_mean_what_they_look_like() -> None:
    text = "{a: off, b: 12:30, c: 2026-01-02, d: yes, e: 010, f: 1e3, g: true, h: ~, i: '5', j: 1_000, k: .5, l: NO}"
    assert read_document(text).data == {
        "a": "off", "b": "12:30", "c": "2026-01-02", "d": "yes", "e": 10, "f": 1000.0,
        "g": True, "h": None, "i": "5", "j": 1000, "k": 0.5, "l": "NO",
    }  # fmt: skip


def test_every_path_has_its_line_and_strangers_take_their_parents() -> None:
    document = read_document("a:\n  - b: 1\n    c: 2\n  - d\n")
    assert document.line(("a",)) == 1
    assert document.line(("a", 0, "c")) == 3
    assert document.line(("a", 1)) == 4
    assert document.line(("a", 0, "c", "deeper")) == 3
    assert document.line(("other",)) == 1


def test_a_key_given_twice_is_a_problem_at_the_second() -> None:
    (problem,) = read_document("x:\n  k: 1\n  l: 2\n  k: 3\n", file="f").problems
    assert str(problem) == "f:4: x.k: given twice, first on line 2"


def test_merge_keys_give_defaults_that_own_keys_override() -> None:
    text = "base: &b {every: 60s, model: m}\nmore: &m {every: 1s, extra: 1}\nt:\n  <<: [*b, *m]\n  model: mine\n"
    document = read_document(text)
    assert document.data["t"] == {"every": "60s", "extra": 1, "model": "mine"}
    assert document.problems == []


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: [1, 2\nb: 3\n", 2, "not valid YAML"),
        ("a: 1\nb: 'open\n", 3, "not valid YAML"),
        ("a: *nothing\n", 1, "undefined alias"),
        ("a: &x\n  - *x\n", 1, "an alias to something that contains it"),
        ("a: 1\n---\nb: 2\n", 2, "not valid YAML"),
        ("a: 1\nb: !!python/name:os.system x\n", 2, "a tag that is not understood"),
        ("a: !!int many\n", 1, "not a value of the type"),
        ("a: !!bool perhaps\n", 1, "not a value of the type"),
        ("? [a, b]\n: 1\n", 1, "a key must be plain text"),
        ("a: 1\nb: \x07\n", 2, "a character that may not stand here"),
        ("a:\n  <<: 5\n", 1, "<< takes a mapping"),
        ("\tx: 1\n", 1, "not valid YAML"),
    ],
)
def test_what_cannot_be_read_has_a_line_and_a_reason(text: str, line: int, words: str) -> None:
    problem = read_document(text).problems[0]
    assert problem.line == line
    assert words in problem.message


def test_a_syntax_error_does_not_repeat_the_text_around_it() -> None:
    text = "providers:\n  groq: {api_key: gsk_canary_canary_canary, x: [}\n"
    assert "canary" not in str(read_document(text).problems)


def test_aliases_cannot_make_a_small_file_endless(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_NODES", 1000)
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    (problem,) = read_document("\n".join(lines)).problems
    assert "too large" in problem.message


def test_a_tower_of_brackets_is_a_problem_and_no_crash() -> None:
    assert "nested too deeply" in read_document("[" * 5000 + "]" * 5000).problems[0].message


def test_a_reference_needs_no_quotes_anywhere() -> None:
    text = "a: {k: ${env:X}, l: [${file:/run/s}, '${env:Y}']}\nb: ${env:Z} # ${env:C}\n\"${env:K}\": 1\n"
    document = read_document(text)
    assert document.problems == []
    assert document.data == {"a": {"k": "${env:X}", "l": ["${file:/run/s}", "${env:Y}"]}, "b": "${env:Z}", "${env:K}": 1}


def test_nothing_is_an_empty_document() -> None:
    assert read_document("# only a comment\n").data == {}


@given(st.text(alphabet=st.sampled_from(" \n:-[]{}'\"&*!|>?#,ab1~<%@`\t\\"), max_size=60) | st.text(max_size=60))
def test_no_text_raises(text: str) -> None:
    document = read_document(text)
    assert document.data is not None or document.problems or text.strip()
