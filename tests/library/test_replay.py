"""`steersman.testing.replay`: an exported session is a test of the agent that it was recorded with."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from library.lab import Asked

import steersman
from steersman.testing import Parted, calls, replay


async def test_an_agent_with_its_own_tool_replays_its_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It passes with the same agent, and parts where a tool may not be called any more."""
    monkeypatch.setenv("STEERSMAN_HOME", str(tmp_path / "home"))

    @steersman.tool
    async def weather(city: str) -> str:
        """Say how the weather is."""
        return f"sunny in {city}"

    agent = steersman.Agent(
        "weatherman", model=Asked(calls("weather", city="Rome"), "It is sunny."), tools=[weather]
    )
    async with steersman.open(tmp_path / "home") as home:
        session = await home.start(agent, folder=tmp_path)
        assert (await session.ask("Rome?")).text == "It is sunny."
        again = await home.replay(session.id, agent=agent)
        assert (again.difference, again.common) == (None, again.entries)
    command = [str(Path(sys.executable).with_name("steersman")), "sessions", "export", session.id]
    exported = tmp_path / "session.json"
    subprocess.run([*command, str(exported)], env=os.environ, check=True, capture_output=True)

    def checked() -> None:
        assert replay(exported, agent).is_same
        careful = steersman.Agent("weatherman", tools=[weather], permissions={"weather": "deny"})
        with pytest.raises(Parted, match="replayed  ended: weather: denied") as parted:
            replay(exported, careful)
        assert parted.value.replay.common == 5

    await asyncio.to_thread(checked)
