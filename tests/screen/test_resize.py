"""A window that changes its size while an answer streams, in a terminal that breaks rows anew: tmux."""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from stories.agent import says
from stories.stage import Stage
from support.driver import COMMAND
from support.fleet import until
from support.model_server import Text

TABLE = "| name of the thing | type | what it does, in a sentence that is long |\n|---|---|---|\n"
ROWS = [
    f"| thing {n} | integer | counts all of the things that there are, {n} |\n" for n in range(6)
]
CODE = f"```\ncode = {'1 + ' * 20}1\n```\n"
ANSWER = f"A first line.\n\n{TABLE}{''.join(ROWS)}\n{CODE}\nThe end of it all.\n"

Tmux = Callable[..., str]


@contextmanager
def tmux(folder: Path, *command: str, environ: dict[str, str]) -> Iterator[Tmux]:
    """Run a command in a tmux of its own, 120 by 40; what is yielded gives tmux a command."""
    socket = folder / "tmux"

    def call(*words: str) -> str:
        made = ("tmux", "-S", str(socket), "-f", "/dev/null", *words)
        ran = subprocess.run(made, capture_output=True, text=True, env=environ, check=True)
        return ran.stdout

    call("new-session", "-d", "-s", "s", "-x", "120", "-y", "40", *command)
    try:
        yield call
    finally:
        call("kill-server")


@pytest.mark.nightly
@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
@pytest.mark.parametrize("at", ["name of the thing", "thing 1", "thing 4"])
def test_a_resize_leaves_nothing_behind(stage: Stage, tmp_path: Path, at: str) -> None:
    """Each row of the answer is there once, whenever the window becomes small, and larger again."""
    stage.agent.when("go", Text(ANSWER, pause=0.05))
    stage.agent.when("", says("Done."))
    environ = {**stage.place.environ, "LANG": "C.UTF-8", "TMUX": ""}
    command = ["env", "-C", str(stage.place.folder), *COMMAND, "chat"]
    with tmux(tmp_path, *command, environ=environ) as call:
        screen = lambda: call("capture-pane", "-p", "-t", "s")  # noqa: E731
        until(lambda: "idle" in screen(), "it is there")
        call("send-keys", "-t", "s", "go", "Enter")
        until(lambda: at in screen(), f"`{at}` comes")
        for columns, lines in ((40, 20), (80, 24)):
            call("resize-window", "-t", "s", "-x", str(columns), "-y", str(lines))
            until(lambda size=columns: f"\n{'─' * size}\n>" in screen(), "it is drawn again")
        until(lambda: "The end of it all." in screen() and "idle" in screen(), "it ends")
        rows = call("capture-pane", "-p", "-S", "-", "-t", "s").split("\n")
    begun = [at for at, row in enumerate(rows) if row.startswith("▌ go")]
    assert begun, "\n".join(rows)
    answer = [row for row in rows[begun[0] :] if row.strip()]
    assert sum("name of the thing" in row for row in answer) == 1
    assert [sum(f"thing {n} " in row for row in answer) for n in range(6)] == [1] * 6
    assert sum("│ type" in row or "| type" in row for row in answer) == 1
    assert sum(row.startswith(">") for row in answer) == 1
