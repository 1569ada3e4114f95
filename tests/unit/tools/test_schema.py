"""tidegate.tools.schema: what is checked, and that nothing is accepted that is not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.tools.schema import TYPES, SchemaError, fault, normal

OBJECT = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1, "maximum": 9}}, "required": ["n"]}


@pytest.mark.parametrize(
    ("schema", "fits", "does_not"),
    [
        (OBJECT, [{"n": 1}, {"n": 9}, {"n": 2.0}], [{}, {"n": 0}, {"n": 10}, {"n": 1.5}, {"n": True}, {"n": "1"}]),
        (OBJECT, [], [[], None, "n", 1]),
        (OBJECT, [{"n": 1}], [{"n": 1, "m": 1}]),
        ({"type": "object", "properties": {}, "additionalProperties": True}, [{}, {"a": 1}], ["a"]),
        ({"type": "object", "properties": {}, "additionalProperties": {"type": "null"}}, [{"a": None}], [{"a": 1}]),
        ({"type": "object", "minProperties": 1, "maxProperties": 2}, [{"a": 1}], [{}, {"a": 1, "b": 1, "c": 1}]),
        ({"type": ["string", "null"]}, ["", None], [0, False, {}]),
        ({"type": "string", "minLength": 1, "maxLength": 3}, ["a", "äöü"], ["", "abcd"]),
        ({"type": "string", "maxLength": 9, "pattern": "^[a-z]+$"}, ["abc"], ["", "a1", "a b"]),
        ({"enum": ["a", 1, None]}, ["a", 1, None, 1.0], ["b", True, 2]),
        ({"const": 0}, [0], [False, 1]),
        ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, [0.5], [0, 1, True]),
        ({"type": "array", "items": {"type": "string"}, "minItems": 1}, [["a"]], [[], ["a", 1]]),
        ({"type": "array", "maxItems": 2}, [[], [1, 2]], [[1, 2, 3]]),
        ({"type": "array", "uniqueItems": True}, [[1, True, {"a": 1}], []], [[1, 1.0], [{"a": 1}, {"a": 1}]]),
        ({"type": "boolean"}, [True, False], [0, 1, "true", None]),
        ({"type": "integer"}, [0, -3, 10**30], [0.5, "0", True]),
    ],
)  # fmt: skip
def test_values_fit_or_do_not(schema: dict[str, Any], fits: list[Any], does_not: list[Any]) -> None:
    """SRV-6: each keyword lets through what JSON Schema lets through, and refuses its neighbour."""
    made = normal(schema)
    assert [fault(made, value) for value in fits] == [""] * len(fits)
    assert all(fault(made, value) for value in does_not)


def test_a_fault_names_the_place_and_repeats_nothing() -> None:
    """SRV-6, JRN-5: what the task sent is not in what is said of it, a name it made up neither."""
    schema = normal({"type": "object", "properties": {"a": {"type": "array", "items": OBJECT}}})
    assert fault(schema, {"a": [{"n": 1}, {"n": "hunter2"}]}) == "input.a[1].n is not of type integer"
    assert "hunter2" not in fault(schema, {"hunter2": 1})


@pytest.mark.parametrize(
    ("schema", "what"),
    [
        ([], "a schema is a mapping"),
        ({}, "it has no type"),
        ({"type": "text"}, "there is no such type"),
        ({"type": []}, "there is no such type"),
        ({"type": ["string", 1]}, "there is no such type"),
        ({"anyOf": [{"type": "string"}]}, "'anyOf' is not checked"),
        ({"$ref": "#/x"}, "'$ref' is not checked"),
        ({"type": "string", "format": "email"}, "'format' is not checked"),
        ({"type": "string", "minLength": -1}, "no such number"),
        ({"type": "string", "maxLength": True}, "no such number"),
        ({"type": "number", "minimum": "1"}, "no such number"),
        ({"type": "string", "pattern": "a"}, "needs a bound"),
        ({"type": "string", "pattern": "(", "maxLength": 9}, "no regular expression"),
        ({"type": "string", "pattern": "a" * 501, "maxLength": 9}, "at most 500"),
        ({"type": "object", "properties": []}, "it is a mapping"),
        ({"type": "object", "properties": {"a": {"type": "x"}}}, "there is no such type"),
        ({"type": "object", "required": "a"}, "a list of names"),
        ({"type": "object", "properties": {}, "required": ["a"]}, "not among 'properties'"),
        ({"type": "object", "additionalProperties": "no"}, "true, false or a schema"),
        ({"enum": []}, "at least one value"),
        ({"type": "array", "uniqueItems": 1}, "a truth value"),
    ],
)
def test_what_is_not_checked_is_refused(schema: Any, what: str) -> None:
    """SRV-6: a schema that says more than is checked is no declaration of a tool."""
    with pytest.raises(SchemaError, match=what.replace("$", r"\$")) as raised:
        normal(schema)
    assert raised.value.advice


def test_depth_is_bounded() -> None:
    """SRV-6: a schema of a thousand levels is refused and no recursion."""
    schema: dict[str, Any] = {"type": "array"}
    for _ in range(100):
        schema = {"type": "array", "items": schema}
    with pytest.raises(SchemaError, match="nested deeper"):
        normal(schema)


def test_the_normal_form_says_what_is_checked() -> None:
    """SRV-6: that other properties are refused is written into what a task is shown."""
    made = normal({"type": "object", "properties": {"a": OBJECT}, "title": "T"})
    assert made["additionalProperties"] is False
    assert made["properties"]["a"]["additionalProperties"] is False
    assert made["title"] == "T"
    assert "additionalProperties" not in normal({"type": "object"})


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-20, 20) | st.floats(-20, 20) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=10,
)
SCHEMAS = st.recursive(
    st.fixed_dictionaries(
        {"type": st.sampled_from(TYPES)},
        optional={
            "enum": st.lists(VALUES, min_size=1, max_size=3),
            "minimum": st.integers(-9, 9),
            "exclusiveMaximum": st.integers(-9, 9),
            "minLength": st.integers(0, 3),
            "maxItems": st.integers(0, 3),
            "uniqueItems": st.booleans(),
        },
    ),
    lambda inner: (
        st.fixed_dictionaries(
            {"type": st.just("object"), "properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=3)},
            optional={"additionalProperties": st.booleans() | inner},
        )
        | st.fixed_dictionaries({"type": st.just("array"), "items": inner})
    ),
    max_leaves=5,
)


@given(SCHEMAS, VALUES)
def test_a_check_agrees_with_the_reference(schema: dict[str, Any], value: Any) -> None:
    """SRV-6: what passes is what another implementation lets pass by the schema that a task is shown."""
    oracle = pytest.importorskip(
        "jsonschema_rs", reason="the package jsonschema_rs, which schemathesis brings, is not there"
    )
    made = normal(schema)
    assert (fault(made, value) == "") == oracle.Draft202012Validator(made).is_valid(value)
