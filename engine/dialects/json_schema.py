"""The JSON Schema of ops.yaml, made from the classes that declare its keys, for editors.

`python -m nnrewrite.engine.dialects.json_schema` prints it; `editors/ops.schema.json` holds what that has printed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args, get_origin

from .keys import DOCUMENT, list_alternatives, list_keys
from .trial_facts import Member

#: the version of JSON Schema that editors know
_DRAFT = "http://json-schema.org/draft-07/schema#"
_SCALARS = {str: "string", Member: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


def make_schema() -> dict[str, Any]:
    """The schema of a whole file."""
    about = "ops.yaml of nnrewrite: operators, and the dialects they belong to"
    return {"$schema": _DRAFT, "title": about, **_make_schema(DOCUMENT)}


def _make_schema(kind: Any) -> dict[str, Any]:
    """The schema of what is of a type."""
    origin, inner = get_origin(kind), get_args(kind)
    several = list_alternatives(kind)
    if kind is Any:
        return {}
    if len(several) > 1:
        return {"anyOf": [_make_schema(one) for one in several]}
    if keys := list_keys(kind):
        found: dict[str, Any] = {
            "type": "object",
            "properties": {key.name: {"description": key.text, **_make_schema(key.type)} for key in keys.values()},
            "additionalProperties": False,
        }
        required = [key.name for key in keys.values() if key.required]
        return {**found, "required": required} if required else found
    if origin is Literal:
        return {"enum": [*inner]}
    if origin is Annotated:
        return {**_make_schema(inner[0]), "pattern": inner[1]}
    if origin is tuple and inner[-1] is Ellipsis:
        return {"type": "array", "items": _make_schema(inner[0])}
    if origin is tuple:
        return {"type": "array", "items": [*map(_make_schema, inner)], "minItems": len(inner), "maxItems": len(inner)}
    if kind in _SCALARS:
        return {"type": _SCALARS[kind]}
    assert origin is not None and issubclass(origin, Mapping), kind
    names = {"propertyNames": {"pattern": "^[0-9]+$"}} if inner[0] is int else {}
    return {"type": "object", **names, "additionalProperties": _make_schema(inner[1])}


if __name__ == "__main__":
    print(json.dumps(make_schema(), indent=1))
