"""Routing tables as files: what is shipped, what is written, and what is wrong."""

import tomllib
from typing import Any

import pytest

from steersman.machines.errors import ConfigError
from steersman.proofs.route_check import SAFETY, check_routes
from steersman.workflows.document import parse_document
from steersman.workflows.suggestions import table_names
from steersman.workflows.table_file import named_table, read_routes, table_text

HEAD = 'name = "mine"\nbase = "steersman"\n'


def read(text: str) -> Any:
    """Read a table from a text."""
    document, diagnostics = parse_document("mine.toml", text.encode())
    assert diagnostics == []
    return read_routes(document)


def test_the_shipped_tables() -> None:
    """The default comes first; each file is named after its table and says what is peculiar to it."""
    names = table_names()
    assert names == ("steersman", "cancel-and-discard", "cancel-on-message", "never-cancel")
    assert [named_table(name).name for name in names] == list(names)
    assert all(named_table(name).doc for name in names)


@pytest.mark.parametrize(
    ("name", "broken"),
    [
        ("steersman", set[str]()),
        ("cancel-on-message", {"kills-child"}),
        ("cancel-and-discard", {"kills-child"}),
        ("never-cancel", {"unheard"}),
    ],
)
def test_a_shipped_table_makes_no_mistake(name: str, broken: set[str]) -> None:
    """It is complete, without dead rows, and breaks just the rules that it is an example of."""
    routes = named_table(name)
    kinds = {route.kind for route in check_routes(routes.dispositions, routes.deliveries)}
    assert kinds == broken
    assert kinds <= set(SAFETY)


@pytest.mark.parametrize("name", table_names())
def test_a_table_reads_back_from_its_text(name: str) -> None:
    """The built-in table, too, is a file of rows when it is written: the same rows in their order."""
    routes = named_table(name)
    text = table_text(routes)
    again = read(text)
    assert (again.name, again.doc) == (routes.name, routes.doc)
    assert again.dispositions == routes.dispositions
    assert again.deliveries == routes.deliveries
    assert "base" not in tomllib.loads(text)


@pytest.mark.parametrize("cause", ["turn_ended", "turn_end"])
def test_rows_go_before_those_of_the_base(cause: str) -> None:
    """What they leave nothing to decide is dropped; an earlier spelling is the same word."""
    table = read(
        HEAD + f'[[delivery]]\nname = "quiet"\ncause = "{cause}"\naction = "none"\nwhy = "So."\n'
    )
    names = [row.name for row in table.deliveries.rows]
    assert names[0] == "quiet"
    assert "turn-ended" not in names
    assert table.dispositions.rows == named_table("steersman").dispositions.rows


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "`name` is missing"),
        (HEAD + "[[delivery]]\n", "`delivery[0].name` is missing"),
        (
            HEAD + '[[disposition]]\nname = "x"\nintent = "convers"\naction = "run"\n',
            "mine.toml:5:10: `disposition[0].intent` must be one of `converse`",
        ),
        (HEAD + '[[disposition]]\nname = "x"\naction = "runn"\n', "did you mean `run`?"),
        (
            HEAD + '[[disposition]]\nname = "x"\naction = "run"\nsituatoin = "idle"\n',
            "did you mean `disposition[0].situation`?",
        ),
        (
            HEAD.replace("steersman", "nobody"),
            "`base` names the table `nobody`, which is not there",
        ),
        (
            HEAD + '[[delivery]]\nname = "steer"\naction = "none"\n',
            "`steer` is the name of another row already",
        ),
        (
            HEAD + '[[delivery]]\nname = "a"\naction = "none"\n'
            '[[delivery]]\nname = "b"\ncause = "stop"\naction = "cancel"\n',
            "mine.toml:7:8: `b` never decides anything: earlier rows match wherever it does",
        ),
    ],
)
def test_a_mistake_in_a_file(text: str, said: str) -> None:
    """It has its place, and what was probably meant."""
    with pytest.raises(ConfigError) as caught:
        read(text)
    assert said in str(caught.value)


def test_all_mistakes_of_a_file_are_reported_at_once() -> None:
    """One run of the check is enough."""
    with pytest.raises(ConfigError) as caught:
        read('nam = "x"\n[[delivery]]\naction = "cancl"\ncause = ["stop", "sotp"]\n')
    text = str(caught.value)
    assert all(word in text for word in ("`name`", "`nam`", "cancl", "sotp", "delivery[0].name"))
