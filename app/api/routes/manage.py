"""Targets that are made, changed and steered through the API. What the config file states is the file's to change."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body
from pydantic import BaseModel, JsonValue
from starlette.responses import Response

from app.api.params import Asking, Known, Name, Served, find_target
from app.api.problems import responses
from app.api.services import Services
from app.api.views import TargetOut
from app.errors import ConfigError, ConflictError, NotFoundError, Problem
from app.storage.queries import managed
from app.storage.queries.fleet import standings
from app.storage.queries.keys import write_audit
from app.storage.queries.session import reading, writing
from app.targets.load import load_target
from app.targets.model import Target
from app.targets.sections import TargetIn

router = APIRouter(tags=["manage"], responses=responses(404, 409))
Document = Annotated[dict[str, JsonValue], Body()]


def schema_of(model: type[BaseModel], *, partial: bool = False, named: bool = False) -> dict[str, Any]:
    """What OpenAPI says of a body that is read as a section of the config file, with a `name` beside it where `named`."""
    schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
    definitions = schema.pop("$defs", {})
    schema = _inlined(schema, definitions)
    if partial:
        schema.pop("required", None)
    if named:
        schema["properties"] = {"name": {"type": "string"}, **schema["properties"]}
        schema["required"] = ["name", *schema["required"]]
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def _inlined(node: Any, definitions: dict[str, Any]) -> Any:  # noqa: ANN401 - JSON schema
    match node:
        case {"$ref": str(reference)}:
            return _inlined(definitions[reference.rsplit("/", 1)[1]], definitions)
        case dict():
            return {key: _inlined(value, definitions) for key, value in node.items()}
        case list():
            return [_inlined(value, definitions) for value in node]
        case _:
            return node


class QueuedOut(BaseModel):
    """A probe that was asked for: `due_at` will be the run's."""

    target: str
    locations: list[str]
    due_at: str


def _own(config_target: Target | None, name: str) -> None:
    """Refuse to change what the file states.

    Raises:
        ConflictError: it stands in the file.
    """
    if config_target is not None and config_target.origin == "file":
        raise ConflictError(f"'{name}' stands in the config file; change it there")


def _known(served: Services, name: str) -> Target | None:
    return next((target for target in served.config().targets if target.name == name), None)


async def _shown(served: Services, name: str) -> TargetOut:
    async with reading(served.database) as session:
        found = await standings(session, [find_target(served.config(), name)], now=served.clock.now())
    return TargetOut.of(found[0])


@router.post("/targets", summary="Watch a new target", status_code=201, openapi_extra=schema_of(TargetIn))
async def create(*, served: Served, known: Known, asking: Asking, document: Document, response: Response) -> TargetOut:
    """The body has the keys of a target in the config file. 409 when the name is taken."""
    target = load_target(document, config=served.config(), catalogue=known)
    if _known(served, target.name) is not None:
        raise ConflictError(f"there is a target '{target.name}' already")
    await _keep(served, asking.name, target.name, document, action="target.create")
    response.headers["Location"] = f"/api/v1/targets/{target.name}"
    return await _shown(served, target.name)


@router.put(
    "/targets/{name:path}",
    summary="Replace a target, or make it",
    responses={201: {"model": TargetOut, "description": "Made"}},
    openapi_extra=schema_of(TargetIn, partial=True),
)
async def replace(
    *, served: Served, known: Known, asking: Asking, name: Name, document: Document, response: Response
) -> TargetOut:
    """The whole target as it shall be; `name` may be left out of the body. 201 when it is new."""
    before = _known(served, name)
    _own(before, name)
    whole = _named(document, name)
    load_target(whole, config=served.config(), catalogue=known)
    await _keep(served, asking.name, name, whole, action="target.replace")
    response.status_code = 200 if before is not None else 201
    return await _shown(served, name)


@router.patch("/targets/{name:path}", summary="Change a target", openapi_extra=schema_of(TargetIn, partial=True))
async def change(*, served: Served, known: Known, asking: Asking, name: Name, document: Document) -> TargetOut:
    """A JSON merge patch (RFC 7396): keys that are given replace, null removes, the rest stays."""
    _own(find_target(served.config(), name), name)
    async with reading(served.database) as session:
        stored = (await managed.documents(session, "targets")).get(name)
    if stored is None:
        raise NotFoundError(f"no target '{name}' was made by the API")
    merged = _named(merge_patch(stored, document), name)
    load_target(merged, config=served.config(), catalogue=known)
    await _keep(served, asking.name, name, merged, action="target.change")
    return await _shown(served, name)


@router.delete("/targets/{name:path}", summary="Watch a target no more", status_code=204)
async def remove(served: Served, asking: Asking, name: Name) -> None:
    """Its open incidents close with that reason; its runs stay until the end of retention."""
    _own(find_target(served.config(), name), name)
    async with writing(served.database) as session:
        await managed.delete_document(session, "targets", name)
        await write_audit(session, at=served.clock.now(), actor=asking.name, action="target.delete", subject=name)
    await served.reload()


@router.post("/targets/{name:path}/pause", summary="Stop probing a target")
async def pause(served: Served, asking: Asking, name: Name) -> TargetOut:
    """Its metrics go and its incidents close with that reason. Targets of the config file can be paused too."""
    find_target(served.config(), name)
    async with writing(served.database) as session:
        await managed.pause(session, name, now=served.clock.now())
        await write_audit(session, at=served.clock.now(), actor=asking.name, action="target.pause", subject=name)
    await served.reload()
    return await _shown(served, name)


@router.post("/targets/{name:path}/resume", summary="Probe a target again")
async def resume(served: Served, asking: Asking, name: Name) -> TargetOut:
    """409 when it is the config file that pauses it."""
    find_target(served.config(), name)
    async with writing(served.database) as session:
        await managed.resume(session, name)
        await write_audit(session, at=served.clock.now(), actor=asking.name, action="target.resume", subject=name)
    await served.reload()
    if find_target(served.config(), name).paused:
        raise ConflictError(f"'{name}' is paused in its definition; change `paused` there")
    return await _shown(served, name)


@router.post("/targets/{name:path}/probe", summary="Probe a target now", status_code=202)
async def probe(served: Served, asking: Asking, name: Name) -> QueuedOut:
    """Queue one probe at each of its locations, ahead of the grid; paused targets too."""
    target, now = find_target(served.config(), name), served.clock.now()
    for location in target.locations:
        await served.trigger_probe(target, location, now)
    async with writing(served.database) as session:
        await write_audit(session, at=served.clock.now(), actor=asking.name, action="target.probe", subject=name)
    return QueuedOut(target=name, locations=list(target.locations), due_at=now.isoformat())


async def _keep(served: Services, actor: str, name: str, document: dict[str, Any], *, action: str) -> None:
    async with writing(served.database) as session:
        new = action.endswith("create")
        await managed.put_document(session, "targets", name, document, now=served.clock.now(), new=new)
        await write_audit(session, at=served.clock.now(), actor=actor, action=action, subject=name, detail=document)
    await served.reload()


def _named(document: dict[str, Any], name: str) -> dict[str, Any]:
    """The document with the name of its path.

    Raises:
        ConfigError: it names another one.
    """
    if document.get("name", name) != name:
        raise ConfigError([Problem(field="name", message=f"must be '{name}', as in the path, or left out")])
    return {**document, "name": name}


def merge_patch(target: Any, patch: Any) -> Any:  # noqa: ANN401 - JSON
    """RFC 7396, section 2."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged
