"""What msgspec accepts as settings and what pydantic, which explains faults, accepts is the same."""

import tomllib
from collections.abc import Iterator
from copy import deepcopy
from datetime import date
from typing import Any

import pytest

from steersman.workflows.config import shipped, shipped_text
from steersman.workflows.declaration import table_problems
from steersman.workflows.problem import Where, dotted
from steersman.workflows.settings import Settings
from steersman.workflows.typed_table import is_sound

VALUES: tuple[Any, ...] = (
    *("", "x", "a name", "read", "off", "1 MiB", "0 kB", "https://x", "local", "\0"),
    *(True, False, -1, 0, 1, 2, 70_000, 10**20, 0.0, 0.5, -0.5, 1e300, float("nan"), float("inf")),
    *(
        [],
        ["x"],
        [""],
        ["a", "b\0"],
        [["x"]],
        [[]],
        [1],
        [None],
        [{}],
        [{"tool": "x", "do": "allow"}],
    ),
    *({}, {"x": 1}, {"x": {}}, {"a name": {}}, {"x": "y"}, date(2026, 1, 1)),
)
MORE: dict[str, Any] = {
    "hooks": [{"on": "turn_ended", "run": ["x"], "timeout": 5}],
    "tool": [{"name": "t", "description": "d", "run": ["x"], "parameters": {}, "required": ["a"]}],
    "schedule": [{"name": "s", "cron": "* * * * *", "say": "x", "variables": {"a": 1}}],
    "mcp": {"one": {"command": ["x"]}, "two": {"url": "http://x", "timeout": 1}},
    "goals": {"max_tokens": 5, "max_minutes": 1.5, "gates": [["true"]]},
    "serve": {"certificate": "c", "key": "k"},
    "limits": {"max_tokens": 1, "max_cost": 0.5},
}


def everything() -> dict[str, Any]:
    """Return settings with each key, also those that the shipped file only shows."""
    lines = shipped_text().split("\n")
    shown = [
        line[1:] if line.startswith("#") and line[1:2] not in (" ", "") else line for line in lines
    ]
    data = tomllib.loads("\n".join(shown))
    for name, value in MORE.items():
        data[name] = {**data[name], **value} if isinstance(value, dict) else value
    return data


def places(data: Any, where: Where = ()) -> Iterator[Where]:
    """List the places of all values, those of tables and lists too."""
    if isinstance(data, dict):
        for name, value in data.items():
            yield (*where, name)
            yield from places(value, (*where, name))
    elif isinstance(data, list) and data:
        yield (*where, 0)
        yield from places(data[0], (*where, 0))


def changed(data: Any, where: Where, value: Any) -> Any:
    """Return a copy with another value at a place."""
    whole = deepcopy(data)
    inner = whole
    for part in where[:-1]:
        inner = inner[part]
    inner[where[-1]] = value
    return whole


def without(data: Any, where: Where) -> Any:
    """Return a copy that lacks what is at a place."""
    whole = deepcopy(data)
    inner = whole
    for part in where[:-1]:
        inner = inner[part]
    del inner[where[-1]]
    return whole


WHOLE = everything()
PLACES = {dotted(where): where for where in places(WHOLE)}


def test_the_whole_is_sound() -> None:
    """What is changed below can be used as it is."""
    assert is_sound(Settings, WHOLE)
    assert table_problems(Settings, WHOLE) == []
    assert is_sound(Settings, shipped().data)


@pytest.mark.parametrize("place", PLACES)
def test_both_accept_the_same(place: str) -> None:
    """With any other value at any place, with an unknown key there, and without the key."""
    where = PLACES[place]
    datas = [changed(WHOLE, where, value) for value in VALUES]
    datas += (
        [without(WHOLE, where), changed(WHOLE, (*where[:-1], "nonsense"), 1)]
        if isinstance(where[-1], str)
        else []
    )
    accepted = [is_sound(Settings, data) for data in datas]
    assert accepted == [not table_problems(Settings, data) for data in datas]
