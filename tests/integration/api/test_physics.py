"""The calculator over HTTP gives what it gives on the command line, and refuses what makes no sense with its field."""

from typing import Any

import pytest

from app.catalog.load import load_catalog
from app.expectation.body import expectation_json
from app.expectation.expect import expect
from app.targets.model import Deployment
from tests.support.doors import House, in_house

LLAMA = {"model_spec": "meta-llama/Llama-3.1-8B-Instruct", "hardware": "A100-SXM-80GB", "devices": 2, "quantization": "bf16"}


def test_the_calculator_answers_every_field_of_expect(dsn: str) -> None:
    async def scenario(house: House) -> None:
        async with house.caller() as client:
            answer = await client.post("/api/v1/expectation", json={**LLAMA, "batch": 8})
        wanted = expectation_json(expect(Deployment(**LLAMA, batch=8), catalog=load_catalog()))
        assert answer.status_code == 200
        assert answer.json() == wanted
        assert answer.json()["ceiling_tps"] == pytest.approx(237.7, rel=0.01)

    in_house(dsn, scenario)


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({}, 422, "body.model_spec"),
        ({"model_spec": "nobody/knows"}, 422, "model_spec"),
        ({**LLAMA, "hardware": "H1000"}, 422, "hardware"),
        ({**LLAMA, "quantization": "FP7"}, 422, "quantization"),
        ({**LLAMA, "devices": 0}, 422, "body.devices"),
        ({**LLAMA, "colour": "red"}, 422, "body.colour"),
        ({**LLAMA, "speculation": "2,0"}, 422, "body.speculation"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_field(dsn: str, body: dict[str, Any], status: int, field: str) -> None:
    async def scenario(house: House) -> None:
        async with house.caller() as client:
            answer = await client.post("/api/v1/expectation", json=body)
        assert answer.status_code == status
        assert [error["field"] for error in answer.json()["errors"]] == [field]

    in_house(dsn, scenario)


def test_the_catalogue_is_listed_searched_and_paged(dsn: str) -> None:
    async def scenario(house: House) -> None:
        async with house.caller() as client:
            hardware = (await client.get("/api/v1/catalog/hardware")).json()["items"]
            models = (await client.get("/api/v1/catalog/models", params={"query": "gpt-oss"})).json()["items"]
            first = (await client.get("/api/v1/catalog/quantizations", params={"limit": 10})).json()
            rest = (await client.get("/api/v1/catalog/quantizations", params={"cursor": first["next_cursor"]})).json()
            none = await client.get("/api/v1/catalog/colours")
        assert len(hardware) == 98
        assert all(row["source"] for row in hardware)
        assert {model["id"] for model in models} >= {"openai/gpt-oss-120b", "openai/gpt-oss-20b"}
        assert len(first["items"]) + len(rest["items"]) == len(load_catalog().quantizations)
        assert rest["next_cursor"] is None
        assert none.status_code == 422

    in_house(dsn, scenario)
