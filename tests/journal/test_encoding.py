"""What is written is JSON, the same whichever encoder wrote it; what is no JSON is refused."""

import json
from typing import Any

import pytest

from steersman.journal.encoding import decode, encode, encode_row
from steersman.journal.store import SessionRow
from steersman.machines.errors import MachineError


@pytest.mark.parametrize(
    "value",
    [
        "plain",
        'quote " backslash \\ control \x00\x1f line \u2028 \U0001f600',
        "half a pair \ud83d",
        {"half a pair \udcff": 1},
        [True, False, None, 0, -1, 2**63, 2**64, -(2**70), 1e16, 1e-7, -0.0, 0.1],
        ("a tuple", ["in", {"it": ()}]),
        [float("inf"), float("-inf")],
        {1: "a number as a name", None: "and none"},
    ],
)
def test_it_reads_as_it_was_written(value: Any):
    """Everything that the standard library's encoder takes comes back as it gives it back."""
    data = {"value": value}
    assert decode("it", encode("it", data)) == json.loads(json.dumps(data))


def test_a_number_that_is_none():
    """It stays what it is, and does not become nothing."""
    (number,) = decode("it", encode("it", {"value": float("nan")})).values()
    assert number != number


@pytest.mark.parametrize("value", [b"bytes", {"a", "set"}, object(), 1j, ValueError])
def test_what_is_no_json(value: Any):
    """It is refused, although a faster encoder would take some of it."""
    with pytest.raises(MachineError, match="it is not JSON"):
        encode("it", {"deep": [{"in": value}]})


def test_what_is_too_deep():
    """Data that contains itself is refused."""
    data: dict[str, Any] = {}
    data["again"] = data
    with pytest.raises(MachineError, match="it is not JSON"):
        encode("it", data)


@pytest.mark.parametrize("folder", ["/home/ann", "/home/\udcff"])
def test_a_row(folder: str):
    """A row has all its fields, also for a folder whose name is no text."""
    row = SessionRow(session="s1", folder=folder, seq=3, updated=1.5)
    data = decode("it", encode_row(row))
    assert data == {name: getattr(row, name) for name in SessionRow.__struct_fields__}
