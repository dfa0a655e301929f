"""Queue items as people read them."""

from typing import Any

import pytest

from steersman.gateway.wording.formats import item_line
from steersman.workflows.paths import login_name

DONE = {"done": 23, "total": 50, "unit": "file"}


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"state": "running", "progress": DONE}, "#2 [RUNNING]: use tabs (file 23/50)"),
        ({"state": "pending"}, "#2 [PENDING]: use tabs"),
        ({"state": "pending", "edited": True}, "#2 [PENDING] (being edited): use tabs"),
        ({"state": "pending", "turn": "t4"}, "#2 [STEERING] → turn t4: use tabs"),
        ({"state": "pending", "children": ["kid", "sib"]}, "#2 [STEERING] → kid, sib: use tabs"),
        ({"state": "steered", "children": ["kid"]}, "#2 [STEERED]: use tabs"),
        ({"state": "pending", "user": "ann"}, "#2 [PENDING] from ann: use tabs"),
        ({"state": "pending", "user": login_name()}, "#2 [PENDING]: use tabs"),
        ({"state": "offered"}, "#2 [OFFERED]: use tabs"),
        ({"state": "offered", "wants": "steer"}, "#2 [STEERING] → when answered: use tabs"),
        ({"state": "offered", "stopped": True, "wants": "steer"}, "#2 [INTERRUPTED]: use tabs"),
    ],
)
def test_a_line_says_what_becomes_of_an_item(fields: dict[str, Any], line: str) -> None:
    """A steer says where it goes; a side talk that was stopped is not offered."""
    item = {"number": 2, "text": "use\ntabs", "progress": None}
    assert item_line(item | fields) == line
