"""A form that a server has a person fill in: what it asks for, and how a typed answer fits. Pure.

A form is a flat JSON schema (Model Context Protocol, elicitation): an object whose fields are texts,
numbers, true or false, or one or some of a list. It comes from a server, so that anything may be in it:
what is not as it should be is passed over.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .json_shape import is_array, is_number, is_object, parse_json
from .value import Value

FORM = "mcp:elicitation"
"""What a question of a form has as its tool; no tool of a model can be called so."""
_YES, _NO = ("true", "yes", "y", "1"), ("false", "no", "n", "0")
_KINDS = {
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "yes or no",
}


class FormField(Value):
    """One field of a form; `least` and `most` bound a number, or the length of a text."""

    name: str
    kind: str
    about: str
    choices: tuple[str, ...] = ()
    is_list: bool = False
    is_required: bool = False
    has_default: bool = False
    default: Any = None
    least: float | None = None
    most: float | None = None

    @property
    def takes(self) -> str:
        """What it takes, in words."""
        if self.choices:
            return f"{'some' if self.is_list else 'one'} of {', '.join(self.choices)}"
        return "a list" if self.is_list else _KINDS[self.kind]

    @property
    def blank(self) -> Any:
        """What stands for it in a form that is not filled in yet."""
        empty = {"integer": 0, "number": 0, "boolean": False}.get(self.kind, "")
        return self.default if self.has_default else [] if self.is_list else empty

    @property
    def line(self) -> str:
        """What it takes, whether it has to be there, and what it usually is."""
        said = [self.takes, *["may be left out"] * (not self.is_required)]
        said += [f"usually {self.default}"] * self.has_default
        return f"{self.name}: {', '.join(said)}{f' ({self.about})' if self.about else ''}"


def fields_of(schema: Mapping[str, Any]) -> tuple[FormField, ...]:
    """Return the fields of a form, in order."""
    required = schema.get("required")
    names = required if is_array(required) else []
    fields = _table(schema.get("properties")).items()
    return tuple(_field(name, field, name in names) for name, field in fields if is_object(field))


def _table(value: Any) -> dict[str, Any]:
    return value if is_object(value) else {}


def _field(name: str, field: dict[str, Any], is_required: bool) -> FormField:
    kind, items = str(field.get("type")), _table(field.get("items"))
    kind = kind if kind in _KINDS else "string"
    bounds = ("minLength", "maxLength") if kind == "string" else ("minimum", "maximum")
    least, most = (field.get(bound) for bound in bounds)
    title = str(field.get("title") or "")
    return FormField(
        name=name,
        kind=kind,
        about=str(field.get("description") or (title if title.lower() != name.lower() else "")),
        choices=_choices(items or field),
        is_list=bool(items) or field.get("type") == "array",
        is_required=is_required,
        has_default="default" in field,
        default=field.get("default"),
        least=least if isinstance(least, int | float) else None,
        most=most if isinstance(most, int | float) else None,
    )


def _choices(field: dict[str, Any]) -> tuple[str, ...]:
    """Return what a field may be, if it is of a list: plain, or each with a title."""
    plain, titled = field.get("enum"), field.get("oneOf") or field.get("anyOf")
    if is_array(plain):
        return tuple(map(str, plain))
    named = map(_table, titled if is_array(titled) else [])
    return tuple(str(one["const"]) for one in named if "const" in one)


def filled(schema: Mapping[str, Any], text: str) -> dict[str, Any] | str:
    """Read a form that a person filled in, or say what is wrong with it.

    It is a JSON object; for a form of one field the text alone will do. Fields that are left out have
    what they usually are.
    """
    fields = fields_of(schema)
    names = [field.name for field in fields]
    given: dict[str, Any] = {}
    if text.lstrip().startswith("{"):
        try:
            given = _table(parse_json(text))
        except ValueError as error:
            return f"the answer is no JSON: {error}"
    elif len(fields) == 1 and text.strip():
        given = {names[0]: text.strip()}
    elif fields and text.strip():
        return f"give a JSON object with the fields {', '.join(names)}"
    if unknown := [name for name in given if name not in names]:
        return f"there is no field `{unknown[0]}`; there are: {', '.join(names) or 'none'}"
    content: dict[str, Any] = {}
    for field in fields:
        if field.name in given:
            content[field.name] = _value(field, given[field.name])
            if fault := _fault(field, content[field.name]):
                return f"`{field.name}` has to be {fault}"
        elif field.has_default:
            content[field.name] = field.default
        elif field.is_required:
            return f"`{field.name}` is missing: {field.takes}"
    return content


def _value(field: FormField, given: Any) -> Any:
    """Return the value of a field: read, if it was given as a text."""
    if not isinstance(given, str):
        return given
    if field.is_list:
        return [one.strip() for one in given.split(",")]
    word = given.strip().lower()
    if field.kind == "boolean" and word in (*_YES, *_NO):
        return word in _YES
    try:
        reads = {"integer": int, "number": float}
        return reads[field.kind](word) if field.kind in reads else given
    except ValueError:
        return given


def _fault(field: FormField, value: Any) -> str:
    """Say what a value would have to be; empty if it fits."""
    if field.is_list or field.choices:
        several = value if is_array(value) else [value]
        is_one_of = all(one in field.choices for one in several) or not field.choices
        return "" if is_one_of and isinstance(value, list) == field.is_list else field.takes
    fits = {
        "string": isinstance(value, str),
        "boolean": isinstance(value, bool),
        "integer": is_number(value) and isinstance(value, int),
        "number": is_number(value),
    }
    if not fits[field.kind]:
        return field.takes
    size = len(value) if isinstance(value, str) else value
    least, most = field.least, field.most
    if (least is None or size >= least) and (most is None or size <= most):
        return ""
    what = " characters long" if field.kind == "string" else ""
    return f"{'any' if least is None else least} to {'any' if most is None else most}{what}"
