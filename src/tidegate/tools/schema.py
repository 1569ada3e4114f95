"""A part of JSON Schema (draft 2020-12) for what a tool takes: small enough to be strict (SRV-6).

Rules of the file:

* A keyword that is not checked here is refused when the tool is declared: a schema that says more than is checked would
  leave a person believing in a fence that is not there.
* An object with `properties` takes no others unless it says so. The default that JSON Schema has is written over by
  `normal`, and what a task is shown is the normal form, so that both read the same.
* What a fault says names places and keywords, never what came: the answer goes to the task, the line to a log.

Pure.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

NOTES = frozenset(("title", "description", "default", "examples", "$schema", "$comment", "deprecated"))
"""Keywords that say something to people and check nothing."""
_COUNTS = (
    "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties",
)  # fmt: skip
_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
CHECKED = frozenset((
    "type", "enum", "const", "properties", "required", "additionalProperties", "items", "pattern", "uniqueItems",
    *_COUNTS, *_NUMBERS,
))  # fmt: skip
TYPES = ("object", "array", "string", "number", "integer", "boolean", "null")
DEEPEST = 32
LONGEST_PATTERN = 500
LONGEST_MATCHED = 4096  # characters of a text that a pattern looks at: the time of some patterns grows with its square


class SchemaError(ValueError):
    """A schema that cannot be checked: where, what is wrong, and what to write instead."""

    def __init__(self, where: str, what: str, advice: str) -> None:
        super().__init__(f"{where}: {what}: {advice}")
        self.where = where
        self.what = what
        self.advice = advice


def normal(schema: Any, where: str = "input_schema", depth: int = 0) -> dict[str, Any]:
    """Return a schema in the form in which it is checked and shown.

    Raises:
        SchemaError: for what is no schema, and for keywords that are not checked.
    """
    if not isinstance(schema, dict):
        raise SchemaError(where, "a schema is a mapping", "write '{type: string}'")
    if depth > DEEPEST:
        raise SchemaError(where, f"it is nested deeper than {DEEPEST}", "make it flatter")
    for key in schema:
        if key not in CHECKED and key not in NOTES:
            raise SchemaError(where, f"{key!r} is not checked", f"write with {', '.join(sorted(CHECKED))}")
    out = dict(schema)
    _check_type(schema, where)
    for key in (*_COUNTS, *_NUMBERS):
        if key in schema:
            _check_bound(schema[key], f"{where}.{key}", whole=key in _COUNTS)
    for key in ("enum", "examples"):
        if key in schema and (not isinstance(schema[key], list) or not schema[key]):
            raise SchemaError(f"{where}.{key}", "it is a list of at least one value", "write '[a, b]'")
    if "uniqueItems" in schema and not isinstance(schema["uniqueItems"], bool):
        raise SchemaError(f"{where}.uniqueItems", "it is a truth value", "write true or false")
    if "pattern" in schema:
        _check_pattern(schema, where)
    if "items" in schema:
        out["items"] = normal(schema["items"], f"{where}.items", depth + 1)
    _normal_object(schema, out, where, depth)
    return out


def _check_type(schema: dict[str, Any], where: str) -> None:
    if "type" not in schema:
        if "enum" not in schema and "const" not in schema:
            raise SchemaError(where, "it has no type", f"write 'type:' and one of {', '.join(TYPES)}")
        return
    named = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if (
        not named
        or any(one not in TYPES for one in named if isinstance(one, str))
        or not all(isinstance(one, str) for one in named)
    ):
        raise SchemaError(f"{where}.type", "there is no such type", f"write one of {', '.join(TYPES)}")


def _check_bound(value: Any, where: str, *, whole: bool) -> None:
    fits = isinstance(value, int) or (isinstance(value, float) and not whole)
    if isinstance(value, bool) or not fits or (whole and value < 0):
        raise SchemaError(where, "it is no such number", "write a whole number from 0" if whole else "write a number")


def _check_pattern(schema: dict[str, Any], where: str) -> None:
    pattern, longest = schema["pattern"], schema.get("maxLength")
    if not isinstance(pattern, str) or len(pattern) > LONGEST_PATTERN:
        raise SchemaError(f"{where}.pattern", f"it is a text of at most {LONGEST_PATTERN} characters", "write one")
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        raise SchemaError(f"{where}.pattern", "it is no regular expression", "write one, such as '^[a-z]+$'") from None
    if not isinstance(longest, int) or longest > LONGEST_MATCHED:
        advice = f"write 'maxLength:' beside it, at most {LONGEST_MATCHED}"
        raise SchemaError(f"{where}.pattern", "a pattern needs a bound for what it looks at", advice)


def _normal_object(schema: dict[str, Any], out: dict[str, Any], where: str, depth: int) -> None:
    known = schema.get("properties", {})
    if not isinstance(known, dict):
        raise SchemaError(f"{where}.properties", "it is a mapping", "write '{amount: {type: integer}}'")
    if "properties" in schema:
        out["properties"] = {key: normal(one, f"{where}.properties.{key}", depth + 1) for key, one in known.items()}
        out.setdefault("additionalProperties", False)
    more = out.get("additionalProperties", True)
    if isinstance(more, dict):
        out["additionalProperties"] = normal(more, f"{where}.additionalProperties", depth + 1)
    elif not isinstance(more, bool):
        raise SchemaError(f"{where}.additionalProperties", "it is true, false or a schema", "leave it out")
    needed = schema.get("required", [])
    if not isinstance(needed, list) or not all(isinstance(one, str) for one in needed):
        raise SchemaError(f"{where}.required", "it is a list of names", "write '[amount]'")
    for name in needed:
        if more is False and name not in known:
            raise SchemaError(f"{where}.required", f"{name!r} is required, and not among 'properties'", "declare it")


def fault(schema: dict[str, Any], value: Any, where: str = "input") -> str:
    """Say what is wrong with a value by a schema that is normal; '' where nothing is."""
    if "type" in schema:
        named = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        if not any(_IS[one](value) for one in named):
            return f"{where} is not of type {' or '.join(named)}"
    if "enum" in schema and not any(_same(value, one) for one in schema["enum"]):
        return f"{where} is none of the values that the schema lists"
    if "const" in schema and not _same(value, schema["const"]):
        return f"{where} is not the value that the schema names"
    if isinstance(value, str):
        return _text_fault(schema, value, where)
    if isinstance(value, dict):
        return _object_fault(schema, value, where)
    if isinstance(value, list):
        return _array_fault(schema, value, where)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _number_fault(schema, value, where)
    return ""


def _text_fault(schema: dict[str, Any], value: str, where: str) -> str:
    fault_ = _count_fault(schema, len(value), where, "Length", "characters")
    if not fault_ and "pattern" in schema and re.search(schema["pattern"], value) is None:
        return f"{where} does not match the pattern of the schema"
    return fault_


def _object_fault(schema: dict[str, Any], value: dict[str, Any], where: str) -> str:
    for name in schema.get("required", ()):
        if name not in value:
            return f"{where} has no {name!r}, which is required"
    known, more = schema.get("properties", {}), schema.get("additionalProperties", True)
    for name, one in value.items():
        if name in known:
            found = fault(known[name], one, f"{where}.{name}")
        elif more is False:
            return f"{where} has a property that the schema does not know"
        else:
            found = fault(more, one, f"{where}.*") if isinstance(more, dict) else ""
        if found:
            return found
    return _count_fault(schema, len(value), where, "Properties", "properties")


def _array_fault(schema: dict[str, Any], value: list[Any], where: str) -> str:
    found = _count_fault(schema, len(value), where, "Items", "items")
    if found:
        return found
    if "items" in schema:
        for number, one in enumerate(value):
            found = fault(schema["items"], one, f"{where}[{number}]")
            if found:
                return found
    if schema.get("uniqueItems") and len({_key(one) for one in value}) != len(value):
        return f"{where} has an item twice"
    return ""


def _number_fault(schema: dict[str, Any], value: float, where: str) -> str:
    for key, fails in _FAILS.items():
        if key in schema and fails(value, schema[key]):
            return f"{where} is outside the bounds of the schema ({key})"
    return ""


def _count_fault(schema: dict[str, Any], count: int, where: str, of: str, what: str) -> str:
    if count < schema.get(f"min{of}", 0):
        return f"{where} has fewer than {schema[f'min{of}']} {what}"
    most = schema.get(f"max{of}")
    return f"{where} has more than {most} {what}" if most is not None and count > most else ""


def _key(value: Any) -> Any:
    # JSON knows one number 1, and true is none.
    if isinstance(value, dict):
        return ("object", frozenset((name, _key(one)) for name, one in value.items()))
    if isinstance(value, list):
        return ("array", tuple(_key(one) for one in value))
    return (isinstance(value, bool), value)


def _same(left: Any, right: Any) -> bool:
    return bool(_key(left) == _key(right))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_IS: dict[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "number": _is_number,
    "integer": lambda value: _is_number(value) and value == int(value),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
}
_FAILS: dict[str, Callable[[float, float], bool]] = {
    "minimum": lambda value, bound: value < bound,
    "maximum": lambda value, bound: value > bound,
    "exclusiveMinimum": lambda value, bound: value <= bound,
    "exclusiveMaximum": lambda value, bound: value >= bound,
}
