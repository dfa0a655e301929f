"""Lines and columns of keys and values, against the standard library's parser."""

import tomllib
from collections.abc import Iterator
from textwrap import dedent
from typing import Any

import pytest
import tomli_w
from hypothesis import given, settings
from hypothesis import strategies as st

from steersman.workflows.positions import Spot, locate
from steersman.workflows.problem import Where

TEXT = dedent('''\
    top = """
    not = "a key"
    [nor.a.table]
    """ # "comment"
    dotted . "quoted.part" = 'x'
    inline = { a = 1, b = { c = [1, "],}", { d = 2 }] } }
    when = 1979-05-27 07:32:00
    quotes = """"two"""""
    literal = \'\'\'
    x = 1 \'\'\'

    [a.b]
    c = [
      1, # one
      2,
    ]
    [[list]]
    x = 1
    [[list]]
      x = 2
      [list.sub]
      y = true
      [[list.inner]]
      z = 0
    ''')


@pytest.mark.parametrize(
    ("where", "key", "value"),
    [
        (("top",), (1, 1), (1, 7)),
        (("dotted", "quoted.part"), (5, 10), (5, 26)),
        (("inline", "b", "c", 1), None, (6, 33)),
        (("inline", "b", "c", 2, "d"), (6, 42), (6, 46)),
        (("when",), (7, 1), (7, 8)),
        (("quotes",), (8, 1), (8, 10)),
        (("literal",), (9, 1), (9, 11)),
        (("a",), (12, 2), None),
        (("a", "b"), (12, 1), None),
        (("a", "b", "c"), (13, 1), (13, 5)),
        (("a", "b", "c", 1), None, (15, 3)),
        (("list", 0, "x"), (18, 1), (18, 5)),
        (("list", 1), (19, 1), None),
        (("list", 1, "x"), (20, 3), (20, 7)),
        (("list", 1, "sub", "y"), (22, 3), (22, 7)),
        (("list", 1, "inner", 0, "z"), (24, 3), (24, 7)),
    ],
)
def test_places(where: Where, key: Spot | None, value: Spot | None) -> None:
    """Keys and values are found in every form that TOML has."""
    tomllib.loads(TEXT)
    places = locate(TEXT)
    assert (places.keys.get(where), places.values.get(where)) == (key, value)


def test_unknown_path_falls_back_to_its_parent() -> None:
    """A path that isn't in the text has the place of what contains it."""
    places = locate(TEXT)
    assert places.find(("a", "b", "missing")) == (12, 1)
    assert places.find(("inline", "b", "c", 2, "e")) == (6, 40)
    assert places.find(("nothing",)) == (1, 1)


NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=6)
SCALARS = st.one_of(st.booleans(), st.integers(), st.text(max_size=9), st.datetimes(), st.dates())
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=12,
)


def leaves(value: Any, where: Where = ()) -> Iterator[tuple[Where, Any]]:
    """List the paths of all values that are no table and no list."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from leaves(item, (*where, name))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from leaves(item, (*where, index))
    else:
        yield where, value


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(NAMES, VALUES, max_size=4), st.booleans())
def test_every_value_stands_where_it_is_said_to(data: dict[str, Any], multiline: bool) -> None:
    """Whatever the text, reading a value at its place gives that value."""
    text = tomli_w.dumps(data, multiline_strings=multiline).replace("\r\n", "\n")
    places = locate(text)
    lines = text.split("\n")
    for where, value in leaves(tomllib.loads(text)):
        line, column = places.values[where]
        rest = "\n".join([lines[line - 1][column - 1 :], *lines[line:]])
        assert any(begins(rest[:end], value) for end in range(1, len(rest) + 1)), where


def begins(text: str, value: Any) -> bool:
    """Whether the text is exactly this value in TOML."""
    try:
        return bool(tomllib.loads(f"value = {text}")["value"] == value)
    except tomllib.TOMLDecodeError:
        return False
