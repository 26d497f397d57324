"""Errors say where and what."""

from app.errors import ConfigError, NotFoundError, Problem


def test_a_config_error_lists_every_problem_with_file_line_and_field() -> None:
    error = ConfigError(
        [Problem(message="unknown key", field="targets.0.evry", file="b.yaml", line=7), Problem(message="no targets")]
    )
    assert str(error) == "b.yaml:7: targets.0.evry: unknown key\nno targets"
    assert error.exit_code == 2


def test_an_unknown_id_names_its_neighbours() -> None:
    assert str(NotFoundError("no hardware 'H10'", near=("H100",))) == "no hardware 'H10'; did you mean H100?"
