"""The variables of one run: the defaults of the file, and the values of `--var NAME=VALUE`."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from ...machines.errors import UsageError
from ...machines.json_shape import parse_json
from ..problem import did_you_mean
from .spec import WorkflowSpec


def bind_texts(spec: WorkflowSpec, pairs: Iterable[str]) -> dict[str, Any]:
    """Return all variables, some from `NAME=VALUE`; a value is read as its default's type asks.

    Raises `UsageError` for a name that is not there, a value of another type, and a required
    variable without a value.
    """
    given: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise UsageError(f"`--var {pair}` has no value", "write it as NAME=VALUE")
        _check_name(spec, name)
        given[name] = _read(name, text, spec.variables.get(name, ""))
    return bind_values(spec, given)


def bind_values(spec: WorkflowSpec, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return all variables, some as given. Raises `UsageError` as `bind_texts` does."""
    for name in given:
        _check_name(spec, name)
    if missing := [name for name in spec.required if name not in given]:
        names = ", ".join(f"`{name}`" for name in missing)
        noun = "variable" if len(missing) == 1 else "variables"
        hint = f"give it with `--var {missing[0]}=…`"
        raise UsageError(f"workflow `{spec.name}` needs the {noun} {names}", hint)
    return {**spec.variables, **given}


def _check_name(spec: WorkflowSpec, name: str) -> None:
    names = [*spec.required, *spec.variables]
    if name in names:
        return
    hint = did_you_mean(name, names) or f"it has: {', '.join(names) or 'none'}"
    raise UsageError(f"workflow `{spec.name}` has no variable `{name}`", hint)


_WANTED: Final = {
    "bool": "true or false",
    "dict": "a JSON table",
    "float": "a number",
    "int": "a whole number",
    "list": "a JSON list",
}


def _read(name: str, text: str, default: object) -> Any:
    if isinstance(default, str):
        return text
    try:
        value = parse_json(text)
    except ValueError:
        value = None
    if isinstance(default, float) and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(value) is not type(default):
        raise UsageError(f"`{name}` must be {_WANTED[type(default).__name__]}, not `{text[:40]}`")
    return value
