"""A function that is a tool tells after a crash what became of its call."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from library.lab import Asked

import steersman
from steersman.testing import calls

PROGRAM = """
import asyncio, sys
from library.test_outcomes import run
print(asyncio.run(run(*sys.argv[1:])))
"""


def booked(context: steersman.Context, seat: str) -> str:
    """Say whether a seat was booked."""
    place = context.folder / context.call_id
    if not place.exists():
        raise LookupError("nobody asked for it")
    return f"{seat} is {place.read_text()}"


@steersman.tool(outcome=booked)
def book(context: steersman.Context, seat: str) -> str:
    """Book a seat, and die before anybody learns of it."""
    if seat != "none":
        (context.folder / context.call_id).write_text("booked")
    os.kill(os.getpid(), signal.SIGKILL)
    return ""


async def run(home: str, folder: str, seat: str, session: str = "") -> str:
    """Book a seat; or go on with a session that was to, and return what the model is told of it."""
    model = Asked("Well." if session else calls("book", seat=seat))
    agent = steersman.Agent(model=model, tools=[book], permissions={"book": "allow"})
    async with steersman.open(home) as runtime:
        if session:
            resumed = await runtime.resume(session, agent=agent)
            await resumed.ask("go on")
            return "".join(model.results)
        begun = await runtime.start(agent, folder=folder)
        print(begun.id, flush=True)
        await begun.ask("a seat, please")
    return "it lives"


@pytest.mark.parametrize(
    ("seat", "told"),
    [("1A", "its tool says:]\n1A is booked"), ("none", "[Unknown outcome")],
    ids=["known", "unknown"],
)
def test_after_a_crash_the_function_is_asked(tmp_path: Path, seat: str, told: str) -> None:
    """With the arguments of the call; if it raises, the outcome is unknown."""

    def ran(*more: str) -> subprocess.CompletedProcess[str]:
        command = (
            sys.executable,
            "-c",
            PROGRAM,
            str(tmp_path / "home"),
            str(tmp_path),
            seat,
            *more,
        )
        environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        return subprocess.run(command, text=True, stdout=subprocess.PIPE, env=environ, check=False)

    (tmp_path / "home").mkdir()
    died = ran()
    assert died.returncode == -signal.SIGKILL
    assert told in ran(died.stdout.strip()).stdout


def test_what_is_asked_takes_what_the_tool_takes() -> None:
    """Other parameters are refused where the tool is declared."""
    with pytest.raises(steersman.UsageError, match=r"`outcome` takes \(seat\), and the tool"):

        @steersman.tool(outcome=lambda seat: seat)
        def order(meal: str) -> str:
            """Order a meal."""
            return meal
