"""Homes: sessions that are begun, listed and resumed, agents that fit, workflows, owners."""

import asyncio
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
from library.lab import Asked, first, started
from pydantic import BaseModel
from support.coroutines import run
from support.model_server import ModelServer, Text, Tools
from support.patience import seconds

import steersman
import steersman.models
from steersman.testing import ScriptedModel, calls, memory_home


@steersman.tool
def weather(city: str) -> str:
    """Tell the weather of a city."""
    return f"{city}: sunny"


def agent(*answers: Any, **settings: Any) -> steersman.Agent:
    """Return an agent with a tool of its own."""
    return steersman.Agent(model=Asked(*answers), tools=[weather], **settings)


# Agents -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"name": " "}, "an agent needs a name"),
        ({"model": 3}, "3 is no model"),
        ({"tools": "read"}, "tools is a text, not a list"),
        ({"tools": [len]}, "<built-in function len> is no tool"),
        ({"tools": [weather, weather]}, "two tools are called `weather`"),
        ({"tools": [steersman.tool(name="mcp__a__b")(lambda: "")]}, "of an MCP server"),
        ({"permissions": {"read": "maybe"}}, "permissions of `read`: 'maybe' is none of 'allow'"),
        ({"limits": {"max_tokens": -1}}, "`limits.max_tokens` must be at least 0, not -1"),
        ({"limits": {"max_words": 1}}, "unknown key `limits.max_words`"),
        ({"max_steps": 0}, "`max_steps` must be at least 1, not 0"),
        ({"instructions": 3}, "`instructions` must be a text in quotes, not 3"),
    ],
)
def test_an_agent_that_cannot_be_is_refused_when_it_is_made(settings: Any, words: str) -> None:
    """Nothing has to run for that."""
    with pytest.raises(steersman.UsageError) as caught:
        steersman.Agent(**settings)
    assert words in caught.value.message


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (lambda: steersman.Agent(model="nowhere"), "no model is called `nowhere`"),
        (lambda: steersman.Agent(model=Asked(), tools=["wether"]), "there is no tool `wether`"),
        (
            lambda: steersman.Agent(model=Asked(), tools=[steersman.tool(name="read")(word)]),
            "`read` is the name of a built-in tool",
        ),
        (lambda: "nobody", "there is no agent `nobody`"),
        (lambda: 3, "3 is no agent"),
    ],
)
async def test_an_agent_that_does_not_fit_is_refused_when_it_is_started(
    given: Any, words: str
) -> None:
    """What depends on the home is checked before there is a session."""
    async with memory_home() as runtime:
        with pytest.raises(steersman.SteersmanError) as caught:
            await runtime.start(given())
        assert words in str(caught.value)
        assert caught.value.hint
        assert runtime.sessions() == []


def word() -> str:
    """Say a word."""
    return "word"


async def test_an_agent_has_its_instructions_tools_and_limits() -> None:
    """The model sees them; without `tools` the agent has the configured ones and no more."""
    model = Asked(calls("weather", city="Rome"), calls("weather", city="Oslo"), "Done.")
    async with memory_home() as runtime:
        given = steersman.Agent(
            "guide",
            model=model,
            instructions="Be brief.",
            tools=["read", "read", weather],
            max_steps=2,
        )
        session = await runtime.start(given)
        outcome = await session.ask("go")
        assert outcome.status == "interrupted"
        reason = "a limit is reached, 2 model calls in a turn"
        assert (outcome.reason, len(model.requests)) == (reason, 2)
        request = model.requests[0]
        assert request.system.startswith("Be brief.")
        assert [tool.name for tool in request.tools] == ["read", "weather"]
        assert [info.agent for info in runtime.sessions()] == ["guide"]
        plain = Asked()
        await (await runtime.start(steersman.Agent(model=plain))).ask("x")
        assert "shell" in [tool.name for tool in plain.requests[0].tools]


async def test_an_agent_has_limits_of_its_own() -> None:
    """Its turn is stopped when the session has used them up; an agent without has none."""
    async with memory_home() as runtime:
        for limits, status in (({"max_tokens": 1}, "interrupted"), (None, "done")):
            model = Asked(calls("weather", city="Rome"), "Done.")
            agent = steersman.Agent("guide", model=model, tools=[weather], limits=limits)
            outcome = await (await runtime.start(agent)).ask("go")
            assert outcome.status == status


async def test_permissions_go_by_the_agent_first() -> None:
    """`deny` holds for a tool of the program's own, `allow` for a built-in one."""
    model = Asked(calls("weather", city="Rome"), calls("shell", command="echo hi"), "Done.")
    async with memory_home() as runtime:
        given = steersman.Agent(
            model=model,
            tools=["shell", weather],
            permissions={"weather": "deny", "shell": "allow"},
        )
        await (await runtime.start(given)).ask("go")
    assert "a rule forbids it" in model.results[0]
    assert "hi" in model.results[1]


async def test_agents_of_one_name_that_start_together_keep_their_own_tools() -> None:
    """Each session has the tool that its agent brought."""

    def numbered(number: int) -> steersman.Agent:
        @steersman.tool
        def tell() -> int:
            """Tell the number."""
            return number

        return steersman.Agent("teller", model=Asked(calls("tell"), "Done."), tools=[tell])

    async with memory_home() as runtime:
        agents = [numbered(number) for number in range(12)]
        sessions = await asyncio.gather(*(runtime.start(given) for given in agents))
        await asyncio.gather(*(session.ask("x") for session in sessions))
        told = [given.model.results for given in agents if isinstance(given.model, Asked)]
        assert told == [[str(number)] for number in range(12)]


# Homes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("home", "words"),
    [
        (3, "3 is no home"),
        ("/proc/nowhere/home", "the folder can't be created"),
        ("mariadb://host/db", "no store is installed for `mariadb:`"),
    ],
)
async def test_a_home_that_cannot_be_is_refused(home: Any, words: str) -> None:
    """When it is opened, at the latest."""
    with pytest.raises(steersman.SteersmanError) as caught:
        async with steersman.open(home):
            pass
    assert words in str(caught.value)


async def test_a_mistake_in_the_configuration_has_its_place(tmp_path: Path) -> None:
    """File, line and suggestion, as on the command line."""
    (tmp_path / "config.toml").write_text('[agents.assistant]\nmodell = "x"\n')
    with pytest.raises(steersman.ConfigError) as caught:
        async with steersman.open(tmp_path):
            pass
    assert "config.toml:2:1" in str(caught.value)
    assert "did you mean `agents.assistant.model`?" in str(caught.value)


async def test_a_home_is_open_or_closed() -> None:
    """It is opened once at a time; what is not open says so."""
    home = memory_home()
    with pytest.raises(steersman.UsageError, match="the home is not open"):
        await home.start()
    for _ in range(2):
        async with home as runtime:
            with pytest.raises(steersman.UsageError, match="the home is open already"):
                async with home:
                    pass
            assert (await (await runtime.start(agent())).ask("x")).status == "done"
    with pytest.raises(steersman.UsageError, match="the home is not open"):
        home.sessions()


async def test_an_error_of_the_program_leaves_the_home_and_goes_on() -> None:
    """Sessions are left, and the error is the program's."""
    made: list[steersman.SessionHandle] = []

    async def fails() -> None:
        async with memory_home() as runtime:
            made.append(await runtime.start(agent()))
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await fails()
    assert not made[0].is_open


@pytest.mark.parametrize("folder", ["nowhere", "file"])
async def test_a_folder_has_to_be_there(tmp_path: Path, folder: str) -> None:
    """For a session, and for a run."""
    (tmp_path / "file").write_text("")
    async with memory_home() as runtime:
        for begin in (
            runtime.start(agent(), folder=tmp_path / folder),
            runtime.run("codemod", folder=tmp_path / folder),
        ):
            with pytest.raises(steersman.UsageError, match="is not a folder"):
                await begin


async def test_a_memory_home_of_tests_reads_no_settings(tmp_path: Path, monkeypatch: Any) -> None:
    """Neither the person's own, nor those of the folder, nor a file that the environment names."""
    broken = tmp_path / "config.toml"
    broken.write_text("modell = 1\n")
    (tmp_path / "steersman.toml").write_text("modell = 1\n")
    monkeypatch.setenv("STEERSMAN_HOME", str(tmp_path))
    monkeypatch.setenv("STEERSMAN_CONFIG", str(broken))
    monkeypatch.chdir(tmp_path)
    async with memory_home() as runtime:
        assert (await (await runtime.start(agent())).ask("x")).status == "done"
    with pytest.raises(steersman.ConfigError):
        async with steersman.open("memory:"):
            pass
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.toml", "steersman.toml"]


# Resuming -----------------------------------------------------------------------------------------


async def test_a_session_is_resumed_with_its_tools_and_instructions(tmp_path: Path) -> None:
    """Nothing runs until it is told to; the conversation goes on where it was."""
    async with steersman.open(tmp_path) as runtime:
        session = await runtime.start(agent("One.", instructions="Be brief."))
        await session.ask("first")
        assert await runtime.resume(session.id[:6]) is session
    model = Asked(calls("weather", city="Rome"), "Two.")
    async with steersman.open(tmp_path) as runtime:
        (listed,) = runtime.sessions()
        assert (listed.id, listed.state, listed.agent) == (session.id, "left", "assistant")
        assert (listed.waiting, listed.workflow, listed.name) == (0, "", "")
        assert listed.folder == str(Path.cwd())
        assert 0 < listed.created <= listed.updated
        assert repr(listed).startswith("SessionInfo(id=")
        given = steersman.Agent(model=model, tools=[weather], instructions="Be long.")
        again = await runtime.resume(session.id, agent=given)
        assert model.requests == []
        assert (await again.ask("second")).text == "Two."
        assert model.requests[0].system.startswith("Be brief.")
        said = [message.text for message in model.requests[0].messages]
        assert said == ["first", "One.", "second"]
        await again.finalize()
        with pytest.raises(steersman.UsageError, match="is finalized"):
            await runtime.resume(session.id, agent=given)


async def test_a_session_that_lacks_a_tool_is_not_resumed(tmp_path: Path) -> None:
    """The error names the tool, and nothing has changed: with the tool it is resumed."""
    async with steersman.open(tmp_path) as runtime:
        session = await runtime.start(agent())
        await session.ask("x")
    async with steersman.open(tmp_path) as runtime:
        for given in (None, steersman.Agent(model=Asked())):
            with pytest.raises(steersman.UsageError) as caught:
                await runtime.resume(session.id, agent=given)
            assert "uses the tool `weather`, which is not there" in caught.value.message
            assert "agent=" in caught.value.hint
        with pytest.raises(steersman.UnknownSession, match="no session `nothing`"):
            await runtime.resume("nothing")
        again = await runtime.resume(session.id, agent=agent("Back."))
        assert (await again.ask("y")).text == "Back."


def test_what_waited_waits_again(tmp_path: Path) -> None:
    """A message that had no turn when the home was closed is there, and runs when it is told to."""

    class Mute(ScriptedModel):
        """Never answers."""

        async def answer(self, request: Any, listener: Any) -> Any:
            return await asyncio.Event().wait()

    async def scene() -> None:
        async with steersman.open(tmp_path) as runtime:
            session = await runtime.start(steersman.Agent(model=Mute([])))
            await session.say("first")
            await first(session, "turn_started")
            waiting = await session.say("second", "queue")
        async with steersman.open(tmp_path) as runtime:
            again = await runtime.resume(session.id, agent=steersman.Agent(model=Asked("1.", "2.")))
            items = [(item["text"], item["state"]) for item in again.queue()["items"]]
            assert items == [("first", "interrupted"), ("second", "pending")]
            recovered = await first(again, "recovered")
            assert (recovered.cause, len(recovered.items)) == ("exit", 2)
            await again.resume_queue()
            again_waiting = await again.say("third", "queue")
            assert (await again_waiting.done()).text == "2."
            ended = [event.item async for event in ends(again, 3)]
            assert ended[-2:] == [waiting.id, again_waiting.id]

    async def ends(session: steersman.SessionHandle, count: int) -> Any:
        async for event in session.events():
            if event.type == "turn_ended":
                count -= 1
                yield event
                if event.item == "m3":
                    return

    run(scene())


OWNER = """
import asyncio, sys
import steersman
from steersman.testing import ScriptedModel

async def main() -> None:
    async with steersman.open(sys.argv[1]) as runtime:
        session = await runtime.start(steersman.Agent(model=ScriptedModel(["Done."])))
        await session.ask("x")
        print(session.id, flush=True)
        await asyncio.to_thread(sys.stdin.read)

asyncio.run(main())
"""


def test_a_session_that_another_program_has_open_is_not_taken_from_it(tmp_path: Path) -> None:
    """The error says how to reach it; other sessions of the home can be used meanwhile."""
    pipe = subprocess.PIPE
    command = (sys.executable, "-c", OWNER, str(tmp_path))
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as owner:
        assert owner.stdout is not None
        name = owner.stdout.readline().strip()

        async def scene() -> None:
            async with steersman.open(tmp_path) as runtime:
                assert [info.id for info in runtime.sessions()] == [name]
                with pytest.raises(steersman.SteersmanError) as caught:
                    await runtime.resume(name)
                assert "another program has session" in str(caught.value)
                assert "attach" in caught.value.hint
                assert (await (await runtime.start(agent())).ask("x")).status == "done"
                owner.communicate(timeout=seconds(30))
                again = await runtime.resume(name, agent=agent("Mine."))
                assert (await again.ask("y")).text == "Mine."

        run(scene())
    assert owner.returncode == 0


# Workflows ----------------------------------------------------------------------------------------

STEPS = """
[workflow]
name = "count"
output = "{{ steps.end.output }}"
[workflow.vars]
word = "one"
[[step]]
id = "say"
run = ["printf", "%s", "{{ vars.word }}"]
[[step]]
id = "end"
needs = ["say"]
run = ["cat", "END"]
"""


async def test_a_workflow_is_run_to_its_result(tmp_path: Path) -> None:
    """A run is a session with events; its result says what each step did."""
    (tmp_path / "count.toml").write_text(STEPS)
    (tmp_path / "END").write_text("over")
    async with steersman.open(tmp_path / "home") as runtime:
        made = await runtime.run(
            tmp_path / "count.toml", variables={"word": "two"}, folder=tmp_path
        )
        result = await made.result()
        assert (result.status, result.output, result.reason) == ("succeeded", "over", "")
        assert [step["step"] for step in result.steps] == ["say", "end"]
        assert repr(result) == "RunResult(status='succeeded', output='over')"
        assert (await made.result()).status == "succeeded"
        assert not made.is_open
        with pytest.raises(steersman.UsageError, match="is a run of the workflow"):
            await runtime.resume(made.id)
        assert [info.workflow for info in runtime.sessions()] == ["count"]
        (tmp_path / "END").unlink()
        failed = await (await runtime.run(tmp_path / "count.toml", folder=tmp_path)).result()
        assert failed.status == "failed"
        assert failed.reason


@pytest.mark.parametrize(
    ("file", "variables", "words"),
    [
        ("nowhere.toml", {}, "it is not there"),
        ("bad.toml", {}, "bad.toml:"),
        ("count.toml", {"words": 1}, "has no variable `words`"),
    ],
)
async def test_a_workflow_that_cannot_run_is_refused(
    tmp_path: Path, file: str, variables: Any, words: str
) -> None:
    """Before anything of it runs."""
    (tmp_path / "count.toml").write_text(STEPS)
    (tmp_path / "bad.toml").write_text(STEPS + 'nedes = ["x"]\n')
    async with memory_home() as runtime:
        with pytest.raises(steersman.SteersmanError) as caught:
            await runtime.run(tmp_path / file, variables=variables, folder=tmp_path)
        assert words in str(caught.value)
        assert runtime.sessions() == []


@pytest.mark.parametrize("how", ["close", "finalize", "home"])
async def test_a_run_that_is_left_is_interrupted(tmp_path: Path, how: str) -> None:
    """Whoever waits for its result gets that."""
    os.mkfifo(tmp_path / "END")
    (tmp_path / "count.toml").write_text(STEPS)
    async with memory_home() as runtime:
        made = await runtime.run(tmp_path / "count.toml", folder=tmp_path)
        await first(made, "step", step="end")
        waits = asyncio.create_task(made.result())
        await asyncio.sleep(0)
        if how != "home":
            await getattr(made, how)()
    assert (await waits).status == "interrupted"
    assert not made.is_open


# A model server -----------------------------------------------------------------------------------


def test_a_configured_model_is_asked_over_http(tmp_path: Path) -> None:
    """The model is a name of the home's configuration; the server sees schema, call and result."""
    told = [
        Tools([{"tool": "weather", "arguments": {"city": "Rome"}}]),
        Text("It is sunny in Rome."),
    ]
    with ModelServer(told) as server:
        (tmp_path / "config.toml").write_text(
            f'[models.main]\nprovider = "openai"\nbase_url = "{server.base_url}"\nmodel = "m"\n'
        )

        async def scene() -> None:
            async with steersman.open(tmp_path) as runtime:
                given = steersman.Agent(model="main", tools=[weather])
                outcome = await (await runtime.start(given)).ask("Rome?")
                assert (outcome.status, outcome.text) == ("done", "It is sunny in Rome.")

        run(scene())
        offered = server.requests[0].body["tools"][0]["function"]
        assert (offered["name"], offered["description"]) == ("weather", weather.schema.description)
        assert server.requests[1].body["messages"][-1]["content"] == "Rome: sunny"


def test_a_home_in_a_database_is_opened_by_its_address(postgres_url: str) -> None:
    """What one runtime said is listed and resumed by another, which knows nothing but the address."""

    async def first_one() -> str:
        async with steersman.open(postgres_url) as runtime:
            session = await runtime.start(agent("Rome."))
            assert (await session.ask("Where?")).text == "Rome."
            return session.id

    async def second_one(session: str) -> str:
        async with steersman.open(postgres_url) as runtime:
            assert [info.id for info in runtime.sessions()] == [session]
            resumed = await runtime.resume(session, agent=agent("Still Rome."))
            return (await resumed.ask("And now?")).text

    assert run(second_one(run(first_one()))) == "Still Rome."


# Answers with a type ------------------------------------------------------------------------------


class Weather(BaseModel):
    """The weather of a city."""

    city: str
    degrees: int


class WeatherStruct(msgspec.Struct):
    """The same as a struct."""

    city: str
    degrees: int


@dataclass
class WeatherData:
    """The same as a dataclass."""

    city: str
    degrees: int


@pytest.mark.parametrize("kind", [Weather, WeatherStruct, WeatherData])
async def test_an_answer_has_the_type_of_its_agent(kind: type[Any]) -> None:
    """The model is told the schema; an answer that does not fit is asked for again, once."""
    good, bad = '{"city": "Rome", "degrees": 30}', '{"city": "Rome", "degrees": "hot"}'
    async with memory_home() as runtime:
        fenced = f"```json\n{good}\n```"
        for answers, asked in (([good], 1), ([fenced], 1), ([bad, good], 2)):
            model = Asked(*answers)
            agent = steersman.Agent(model=model, instructions="Be brief.", output=kind)
            outcome = await (await runtime.start(agent)).ask("Rome?")
            assert (outcome.status, outcome.value) == ("done", kind(city="Rome", degrees=30))
            assert len(model.requests) == asked
            system = model.requests[0].system
            assert "Be brief." in system
            assert '"degrees"' in system
        model = Asked(bad, "no idea", good)
        outcome = await (await runtime.start(steersman.Agent(model=model, output=kind))).ask("?")
        assert (outcome.status, outcome.value) == ("failed", None)
        assert "does not fit" in outcome.reason
        assert len(model.requests) == 2
        assert "degrees" in model.requests[1].messages[-1].text


def test_a_type_that_no_schema_expresses_is_refused() -> None:
    """When the agent is made."""
    with pytest.raises(steersman.UsageError, match="no JSON schema expresses"):
        steersman.Agent(output=asyncio.Lock)


def test_models_are_objects() -> None:
    """A server by its address; its key is sent, that of another service is not."""

    async def scene(server: ModelServer, key: str | None) -> None:
        model = steersman.models.openai("m", base_url=server.base_url, key=key, images=True)
        async with started(model) as session:
            assert (await session.ask("Rome?")).text == "Sunny."
        await model.aclose()

    for key, sent in (("k1", "Bearer k1"), (None, None)):
        with ModelServer([Text("Sunny.")]) as server:
            run(scene(server, key))
            assert server.requests[0].headers.get("authorization") == sent
