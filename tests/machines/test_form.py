"""Forms of servers: what people type against what is asked for."""

from typing import Any

import pytest

from steersman.machines.form import fields_of, filled

FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 2, "maxLength": 5, "description": "of the branch"},
        "count": {"type": "integer", "minimum": 1, "maximum": 9, "default": 3},
        "share": {"type": "number"},
        "force": {"type": "boolean"},
        "kind": {"type": "string", "enum": ["new", "old"]},
        "days": {"type": "array", "items": {"type": "string", "enum": ["mon", "tue"]}},
        "tone": {"type": "string", "oneOf": [{"const": "kind", "title": "Kind"}]},
    },
    "required": ["name"],
}


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ('{"name": "main"}', {"name": "main", "count": 3}),
        ('{"name": "main", "count": "7"}', {"name": "main", "count": 7}),
        ('{"name": "main", "share": 0.5}', {"name": "main", "count": 3, "share": 0.5}),
        ('{"name": "main", "force": "yes"}', {"name": "main", "count": 3, "force": True}),
        (
            '{"name": "main", "days": "mon, tue"}',
            {"name": "main", "count": 3, "days": ["mon", "tue"]},
        ),
        ('{"name": "main", "tone": "kind"}', {"name": "main", "count": 3, "tone": "kind"}),
        ("{", "the answer is no JSON"),
        ("[1]", "give a JSON object with the fields name"),
        ("{}", "`name` is missing: a text"),
        ('{"name": "a"}', "`name` has to be 2 to 5 characters long"),
        ('{"name": 3}', "`name` has to be a text"),
        ('{"name": "main", "count": 10}', "`count` has to be 1 to 9"),
        ('{"name": "main", "count": true}', "`count` has to be a whole number"),
        ('{"name": "main", "force": "perhaps"}', "`force` has to be yes or no"),
        ('{"name": "main", "kind": "odd"}', "`kind` has to be one of new, old"),
        ('{"name": "main", "days": ["sun"]}', "`days` has to be some of mon, tue"),
        ('{"name": "main", "colour": "red"}', "there is no field `colour`"),
    ],
)
def test_what_is_typed_fits_or_is_refused(text: str, content: dict[str, Any] | str) -> None:
    """A field that is left out has its usual value; a fault names the field and what it takes."""
    found = filled(FORM, text)
    if isinstance(content, str):
        assert isinstance(found, str)
        assert found.startswith(content)
    else:
        assert found == content


def test_one_field_takes_a_text_alone() -> None:
    """And no field takes anything, as an address that was looked at."""
    one = {"properties": {"branch": {"type": "string"}}, "required": ["branch"]}
    assert filled(one, " main ") == {"branch": "main"}
    assert filled(one, "") == "`branch` is missing: a text"
    assert filled({}, "done") == {}


@pytest.mark.parametrize(
    "schema", [{"properties": 3}, {"properties": {"a": None}}, {"required": 7}]
)
def test_a_schema_of_nonsense_asks_for_nothing(schema: dict[str, Any]) -> None:
    """A server may send anything."""
    assert fields_of(schema) == ()
    assert filled(schema, "") == {}


@pytest.mark.parametrize(
    "field", [{"enum": [3, {}]}, {"minLength": "x"}, {"items": 1}, {"type": []}]
)
@pytest.mark.parametrize("text", ['{"a": "b"}', '{"a": [{}]}', '{"a": {}}', '{"a": 1e400}'])
def test_a_field_of_nonsense_harms_nobody(field: dict[str, Any], text: str) -> None:
    """Whatever a person answers it with."""
    assert filled({"properties": {"a": field}, "required": ["a"]}, text)


def test_each_field_is_said_in_a_line() -> None:
    """What it is, whether it may be left out, what it usually is."""
    lines = [field.line for field in fields_of(FORM)]
    assert lines[:3] == [
        "name: a text (of the branch)",
        "count: a whole number, may be left out, usually 3",
        "share: a number, may be left out",
    ]
    assert "days: some of mon, tue, may be left out" in lines
