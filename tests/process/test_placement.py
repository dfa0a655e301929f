"""The seam to other machines: what a remote step's command is given, and what becomes of its result."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.fake_placement import KILLED, LOST, FakePlacement, exited
from support.patience import seconds

from steersman.machines import protocol as m
from steersman.ports.placement import Placement
from steersman.ports.process.host import ProcessHost
from steersman.ports.tools.environment import clean_environment
from steersman.ports.tools.tool import ToolContext
from steersman.ports.tools.toolbox import Toolbox

REMOTE = {"cpus": 1.0, "gpus": 0.0, "memory": 0, "inputs": [], "outputs": []}


def run(
    folder: Path,
    arguments: dict[str, Any],
    placement: Placement | None = None,
    stop_when: Callable[[], bool] | None = None,
) -> tuple[m.ToolResult, str]:
    """Run a workflow's command in a folder; return its result and what it streamed."""

    async def scenario() -> tuple[m.ToolResult, str]:
        printed: list[str] = []
        host = ProcessHost()
        try:
            toolbox = Toolbox(host, grace=0.05, output_limit=4000, placement=placement)
            tool = toolbox.get("command")
            assert tool is not None
            context = ToolContext(
                folder=folder,
                call="t1.w1",
                spill_folder=folder.parent / "spill",
                environment=clean_environment(os.environ),
                on_output=printed.append,
            )
            async with asyncio.timeout(seconds(60)):
                begun = tool.start(arguments, context)
                while stop_when is not None and not stop_when():
                    await asyncio.sleep(0)
                if stop_when is not None:
                    begun.stop()
                return await begun.wait(), "".join(printed)
        finally:
            await host.aclose()

    return asyncio.run(scenario())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a run."""
    made = tmp_path / "work"
    made.mkdir()
    return made


def test_without_a_place_a_remote_step_gives_the_result_of_any_other(folder: Path) -> None:
    """Byte for byte; only what it declares is looked for besides, in folders that are there."""
    script = "printf 'a\\303\\n'; echo err >&2; exit 3"
    plain = {"argv": ["sh", "-c", script]}
    assert run(folder, {**plain, "remote": REMOTE}) == run(folder, plain)
    argv = ["sh", "-c", "echo x > out/deep/a"]
    declared = {**REMOTE, "outputs": ["out/deep/a", "out/b", "c"]}
    result, _ = run(folder, {"argv": argv, "remote": declared})
    assert (result.status, result.missing) == ("ok", ("out/b", "c"))
    assert (folder / "out/deep/a").read_text() == "x\n"


def test_an_output_outside_the_folder_is_refused(folder: Path) -> None:
    """A link may lead there, which only the run can see; then the command does not begin."""
    (folder / "out").symlink_to(folder.parent)
    declared = {**REMOTE, "outputs": ["out/a"]}
    result, _ = run(folder, {"argv": ["touch", "began"], "remote": declared})
    assert result.status == "failed"
    assert "the output `out/a` leads outside the folder" in result.text
    assert not (folder / "began").exists()


def test_a_command_is_handed_over_with_what_it_needs(folder: Path) -> None:
    """Its place gets arguments, resources and paths, and of the environment only what the step adds."""
    place = FakePlacement([exited(head=b"done\n")])
    arguments = {
        "argv": ["render", "a b"],
        "env": {"A": "1"},
        "cwd": "sub",
        "timeout": 3.0,
        "remote": {"cpus": 2, "gpus": 1, "memory": 5, "inputs": ["i"], "outputs": ["o"]},
    }
    result, printed = run(folder, arguments, place)
    assert (result.status, result.text, result.exit_code, printed) == ("ok", "done\n", 0, "done\n")
    (command,) = place.commands
    assert (command.process.argv, command.process.timeout) == (("render", "a b"), 3.0)
    assert (command.folder, command.cwd, dict(command.added)) == (folder, "sub", {"A": "1"})
    assert (command.cpus, command.gpus, command.memory) == (2, 1, 5)
    assert (command.inputs, command.outputs, command.call) == (("i",), ("o",), None)


@pytest.mark.parametrize(("beside", "expected"), [("flows", "flows"), ("../flows", ".")])
def test_a_call_takes_its_folder_along(folder: Path, beside: str, expected: str) -> None:
    """The module of a function lies beside the workflow's file, as it does here."""
    place = FakePlacement([exited(head=b"1")])
    call = {"call": "tasks:count", "with": {"n": 1}, "folder": str(folder / beside)}
    run(folder, {**call, "remote": REMOTE}, place)
    assert place.commands[0].call == {"call": "tasks:count", "with": {"n": 1}, "folder": expected}


def test_a_lost_worker_is_an_unknown_outcome(folder: Path) -> None:
    """It is neither a failure nor a stop, also when the stop came first."""
    result, _ = run(folder, {"argv": ["x"], "remote": REMOTE}, FakePlacement([LOST]))
    assert (result.status, result.text) == ("unknown", "its worker was lost")
    place = FakePlacement(after_stop=LOST)
    arguments = {"argv": ["x"], "remote": REMOTE}
    result, _ = run(folder, arguments, place, lambda: bool(place.commands))
    assert result.status == "unknown"


@pytest.mark.parametrize(("after_stop", "status"), [(KILLED, "killed"), (exited(), "ok")])
def test_a_stop_reaches_the_place(folder: Path, after_stop: Any, status: str) -> None:
    """The result is that it was killed, or its real one if that was faster."""
    place = FakePlacement(after_stop=after_stop)
    arguments = {"argv": ["x"], "remote": REMOTE}
    result, _ = run(folder, arguments, place, lambda: bool(place.commands))
    assert result.status == status


def test_what_is_missing_there_is_missing(folder: Path) -> None:
    """A file of that name in the folder here does not count: the command had none."""
    (folder / "out").write_text("old")
    place = FakePlacement([exited(missing=("out",))])
    declared = {**REMOTE, "outputs": ["out"]}
    result, _ = run(folder, {"argv": ["x"], "remote": declared}, place)
    assert result.missing == ("out",)
