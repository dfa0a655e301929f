"""Tools in a process of their own: the same results, the same errors, and an end that is certain."""

from pathlib import Path

import pytest
from library.isolated_tools import TOOLS, block, fail, speak, tell
from library.lab import Asked, first, result_of, started
from support.driver import wait_gone

from steersman.testing import calls


def test_what_an_isolated_tool_prints_is_not_its_result(capfd: pytest.CaptureFixture[str]) -> None:
    """Neither what it prints, nor what its own programs print, not even what looks like a note."""
    assert result_of(speak, word="down") == "written down"
    assert capfd.readouterr().out == ""


async def test_an_isolated_tool_has_its_context(tmp_path: Path) -> None:
    """It knows its call, and its progress is an event."""
    model = Asked(calls("tell"), "Done.")
    async with started(model, tell, folder=tmp_path) as session:
        await session.ask("go")
        assert (await first(session, "progress")).unit == "files"
    assert model.results == [
        f'{{"call":"t1.s1.c1","folder":"{tmp_path}","is_other":true}}',
    ]


@pytest.mark.parametrize(
    ("how", "text"),
    [
        ("ToolError", "Error: no such city"),
        ("ValueError", "Error: ValueError: no good (isolated_tools.py:"),
        ("sys.exit", "called sys.exit(4) instead of returning"),
        ("os._exit", "Error: its process ended before the function returned"),
        ("killed", "ended by signal 9"),
        ("no JSON", "Error: `fail` returned a `object`, which JSON does not have"),
    ],
)
def test_what_goes_wrong_in_an_isolated_tool_is_an_error_that_the_model_reads(
    how: str, text: str
) -> None:
    """The words are those of any other tool; the process may even be killed."""
    assert text in result_of(fail, how=how)


def test_wrong_arguments_start_no_process() -> None:
    """They are refused as for any other tool."""
    assert result_of(speak) == "[speak was not run: `word` is missing]"


async def test_an_isolated_tool_that_ignores_everything_is_dead_after_a_stop(
    tmp_path: Path,
) -> None:
    """With every process that it started, and the event `stopped` says so."""
    model = Asked(calls("block"), "Done.")
    async with started(model, block, folder=tmp_path) as session:
        receipt = await session.say("go")
        await first(session, "progress")
        pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
        await session.stop()
        assert (await receipt.done()).status == "interrupted"
        stopped = await first(session, "stopped")
        assert set(pids) <= set(stopped.killed)
        assert stopped.survivors == []
        assert wait_gone(pids) == []


def test_they_are_still_functions() -> None:
    """A program that calls one gets its result, in its own process."""
    assert [tool.name for tool in TOOLS] == ["speak", "photograph", "tell", "fail", "block"]
    assert type(fail("nothing")) is object
