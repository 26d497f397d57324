"""Look-up by anything that people and providers write; near matches for what nobody knows."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.catalog.load import Catalog, load_catalog
from app.catalog.names import Names, fold, peeled
from app.errors import NotFoundError, UsageError

CATALOG = load_catalog()


@pytest.mark.parametrize(
    ("text", "model"),
    [
        ("openai/gpt-oss-120b:free", "openai/gpt-oss-120b"),
        ("openai/gpt-oss-20b:nitro", "openai/gpt-oss-20b"),
        ("GPT-OSS-120B", "openai/gpt-oss-120b"),
        ("  gpt oss 120b ", "openai/gpt-oss-120b"),
        ("gpt-oss:120b", "openai/gpt-oss-120b"),
        ("gpt-oss:120b-cloud", "openai/gpt-oss-120b"),
        ("gpt-oss-120b-2025-08-05", "openai/gpt-oss-120b"),
        ("llama-3.3-70b-versatile", "meta-llama/Llama-3.3-70B-Instruct"),
        ("llama-3.1-8b-instant", "meta-llama/Llama-3.1-8B-Instruct"),
        ("llama3.1:70b", "meta-llama/Llama-3.1-70B-Instruct"),
        ("Llama 3.3 70B", "meta-llama/Llama-3.3-70B-Instruct"),
        ("meta-llama/Llama-3.3-70B-Instruct-Turbo", "meta-llama/Llama-3.3-70B-Instruct"),
        ("accounts/fireworks/models/gpt-oss-20b", "openai/gpt-oss-20b"),
        ("accounts/fireworks/models/llama-v3p3-70b-instruct", "meta-llama/Llama-3.3-70B-Instruct"),
        ("@cf/meta/llama-3.1-8b-instruct-fp8", "meta-llama/Llama-3.1-8B-Instruct"),
        ("qwen2.5:32b-instruct-q4_K_M", "Qwen/Qwen2.5-32B-Instruct"),
        ("Qwen/Qwen3-32B", "Qwen/Qwen3-32B"),
        ("Qwen3-235B-A22B-Thinking-2507", "Qwen/Qwen3-235B-A22B-Instruct-2507"),
        ("qwen3-235b-a22b", "Qwen/Qwen3-235B-A22B-Instruct-2507"),
        ("deepseek-r1-0528", "deepseek-ai/DeepSeek-R1"),
        ("deepseek-v3.1-terminus", "deepseek-ai/DeepSeek-V3.1"),
        ("kimi-k2-0905", "moonshotai/Kimi-K2-Instruct"),
        ("mistral-large-2407", "mistralai/Mistral-Large-Instruct-2411"),
    ],
)
def test_a_model_is_found_by_what_people_and_providers_call_it(text: str, model: str) -> None:
    assert CATALOG.model(text).id == model


@pytest.mark.parametrize(
    ("text", "hardware"),
    [
        ("h100-sxm-80gb", "H100-SXM-80GB"),
        ("H100 SXM 80GB", "H100-SXM-80GB"),
        ("H100-SXM", "H100-SXM-80GB"),
        ("b200", "B200-SXM-180GB"),
        ("NVIDIA H200", "H200-SXM-141GB"),
        ("rtx 4090", "RTX-4090-24GB"),
        ("mi300x", "MI300X-192GB"),
        ("M2 Ultra", "M2-ULTRA"),
    ],
)
def test_an_accelerator_is_found_by_its_marketing_name(text: str, hardware: str) -> None:
    assert CATALOG.hardware_of(text).id == hardware


@pytest.mark.parametrize(
    ("text", "quantization"),
    [
        ("INT4", "GPTQ-INT4"),
        ("w4a16", "GPTQ-INT4"),
        ("fp8", "FP8"),
        ("q4_k_m", "Q4_K_M"),
        ("F16", "FP16"),
        ("gptq-int8", "INT8-WO"),
    ],
)
def test_a_format_is_found_by_its_short_name(text: str, quantization: str) -> None:
    assert CATALOG.quantization(text).id == quantization


def test_every_id_and_every_alias_finds_its_own_row() -> None:
    for model in CATALOG.models.values():
        assert CATALOG.model(model.id) is model
        assert CATALOG.model(model.id.upper()) is model
        for alias in model.aliases:
            try:
                assert CATALOG.model(alias).id == model.id or alias in CATALOG.model(alias).aliases
            except UsageError as error:
                assert model.id in str(error)  # noqa: PT017 - an alias that several rows claim
    for row in CATALOG.accelerators.values():
        assert CATALOG.hardware_of(row.id.lower()) is row
    for quantization in CATALOG.quantizations.values():
        assert CATALOG.quantization(quantization.id.lower()).id == quantization.id


def test_a_name_that_fits_several_is_answered_with_all_of_them() -> None:
    with pytest.raises(UsageError, match="may mean H100-NVL-94GB, H100-PCIE-80GB, H100-SXM-80GB"):
        CATALOG.hardware_of("h100")


@pytest.mark.parametrize(
    ("text", "near"),
    [("H100-SXM-81GB", "H100-SXM-80GB"), ("4090", "RTX-4090-24GB"), ("wse-3", "CEREBRAS-WSE-3"), ("groq", "GROQ-LPU-V1")],
)
def test_unknown_hardware_names_its_neighbours(text: str, near: str) -> None:
    with pytest.raises(NotFoundError, match="did you mean") as caught:
        CATALOG.hardware_of(text)
    assert near in caught.value.near
    assert len(caught.value.near) <= 4


@pytest.mark.parametrize("text", ["llama-9-70b-instruct", "gpt-oss-121b"])
def test_an_unknown_model_names_its_neighbours(text: str) -> None:
    with pytest.raises(NotFoundError, match="did you mean"):
        CATALOG.model(text)


@pytest.mark.parametrize("text", ["claude-sonnet-4.5", "", ":", "-", "zzzz"])
def test_what_is_like_nothing_is_just_not_found(text: str) -> None:
    with pytest.raises(NotFoundError):
        CATALOG.model(text)


@settings(deadline=None)
@given(st.text(max_size=60))
def test_no_text_breaks_the_look_up(text: str) -> None:
    try:
        assert CATALOG.model(text).id in CATALOG.models
    except (NotFoundError, UsageError) as error:
        assert str(error)  # noqa: PT017 - either is an answer


def test_endings_are_taken_off_one_after_another() -> None:
    assert list(peeled("qwen3-235b-a22b-instruct-2507")) == ["qwen3-235b-a22b-instruct", "qwen3-235b-a22b"]
    assert list(peeled("-instruct")) == []


def test_an_exact_id_wins_over_a_shortened_one() -> None:
    names = Names.of([("a/x-7b", ()), ("a/x-7b-instruct", ())])
    assert names.ids("x-7b") == ("a/x-7b",)
    assert names.ids("a/x-7b-instruct") == ("a/x-7b-instruct",)
    assert fold("A/X 7B") == "a-x-7b"


def test_a_catalogue_of_plain_rows_is_searched_as_well() -> None:
    one = Catalog(
        accelerators={"H100-SXM-80GB": CATALOG.accelerators["H100-SXM-80GB"]},
        models={"openai/gpt-oss-120b": CATALOG.models["openai/gpt-oss-120b"]},
        quantizations={},
    )
    assert one.hardware_of("h100 sxm5 80gb").id == "H100-SXM-80GB"
    assert one.model("gpt-oss:120b").id == "openai/gpt-oss-120b"
    assert one.provider_of("api.groq.com") is None
