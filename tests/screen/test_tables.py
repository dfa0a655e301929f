"""Tables are as wide as the terminal, and lose nothing by it."""

import pytest
from stories.stage import Stage


@pytest.mark.parametrize("columns", [50, 80])
def test_routes_fit_the_terminal(stage: Stage, columns: int) -> None:
    """All that is printed into a pipe is there, in rows that are not broken by the edge."""
    whole = stage.runs("routes", "show")
    assert any(len(line) > 100 for line in whole.splitlines())
    terminal = stage.starts("routes", "show", size=(columns, 24))
    assert terminal.ended() == 0
    assert "".join(" ".join(terminal.rows).split()) == "".join(whole.split())
