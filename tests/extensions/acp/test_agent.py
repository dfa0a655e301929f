"""`steersman acp`, driven by the protocol library's own client as an editor would."""

import asyncio
import json
import signal
import sys
from typing import Any

import pytest
from acp import PROTOCOL_VERSION, RequestError, image_block, text_block
from blackbox.conftest import Serve
from extensions.acp.editor import editing
from support.coroutines import run
from support.driver import Gate, Place, wait_gone
from support.executed import executed
from support.mcp_servers import PIXEL
from support.model_server import Door, Hang, Stall, Status, Text, Tools, shell

from steersman.extensions.acp.wire import LineTransport
from steersman.gateway.wording.terminal import audited


def statuses(editor: Any, call: str) -> list[str]:
    """Return how a call went, update by update."""
    kinds = ("tool_call", "tool_call_update")
    return [
        one.status
        for _, one in editor.updates
        if one.session_update in kinds and one.tool_call_id == call
    ]


async def test_a_prompt_streams_asks_changes_a_file_and_ends(place: Place, serve: Serve) -> None:
    """Text, a question with the difference, the tool's way, its output, the usage, in one turn."""
    write = {"path": "notes.txt", "content": "new\n"}
    (place.folder / "notes.txt").write_text("old\n")
    progress = {"tool": "progress", "arguments": {"done": 12, "total": 50, "unit": "file"}}
    serve(
        Tools([{"tool": "write", "arguments": write}], text="I write it. "),
        Tools([progress]),
        Text("All done."),
    )
    async with editing(place) as editor:
        able = editor.about.agent_capabilities
        assert able.load_session
        assert able.session_capabilities.close is not None
        assert editor.about.field_meta["steering"] == {"supported": True}
        session = await editor.new(place)
        answer = await editor.say(session, "write my notes")
        assert answer.stop_reason == "end_turn"
        assert answer.usage.input_tokens > 0
        text = editor.text(session)
        assert text.index("I write it.") < text.index("All done.")
        _, asked, options = editor.asked[0]
        assert [option.kind for option in options] == [
            "allow_once",
            "allow_always",
            "reject_once",
        ]
        (difference,) = asked.content
        assert (difference.old_text, difference.new_text) == ("old\n", "new\n")
        assert difference.path == str(place.folder / "notes.txt")
        started = editor.of("tool_call", session)[0]
        assert (started.kind, started.locations[0].path) == ("edit", difference.path)
        assert statuses(editor, started.tool_call_id) == ["pending", "in_progress", "completed"]
        assert editor.of("plan", session)[0].entries[0].content == "file 12/50"
        await editor.until(lambda: bool(editor.of("available_commands_update", session)))
        known = editor.of("available_commands_update", session)[0].available_commands
        assert {"queue", "steer", "revert"} <= {one.name for one in known}
        assert "exit" not in {one.name for one in known}
    assert editor.process.returncode == 0
    assert (place.folder / "notes.txt").read_text() == "new\n"
    assert place.stored()["state"] == "suspended"


async def test_a_cancel_stops_the_turn_and_its_tool_and_a_denial_is_reported(
    place: Place, serve: Serve, gate: Gate
) -> None:
    """Cancelled is the answer; the command is dead; a later question that is denied runs nothing."""
    serve(
        shell(f"trap '' TERM; {gate.command}; sleep 600"), shell("touch no"), Text("As you wish.")
    )
    async with editing(place) as editor:
        session = await editor.new(place)
        answer = editor.say(session, "work")
        pid = await asyncio.to_thread(gate.wait)
        await editor.agent.cancel(session_id=session)
        assert (await answer).stop_reason == "cancelled"
        await asyncio.to_thread(wait_gone, [pid])
        editor.choice = "deny"
        assert (await editor.say(session, "and now")).stop_reason == "end_turn"
        assert "As you wish." in editor.text(session)
    assert not (place.folder / "no").exists()


async def test_a_question_that_is_cancelled_ends_the_turn_and_a_late_answer_changes_nothing(
    place: Place, serve: Serve
) -> None:
    """A cancel while a question is open: the answer that comes afterwards is ignored."""
    serve(shell("touch no"), Text("Something else."))
    async with editing(place) as editor:
        session = await editor.new(place)
        editor.choice = asyncio.get_running_loop().create_future()
        answer = editor.say(session, "work")
        await editor.until(lambda: bool(editor.asked))
        await editor.agent.cancel(session_id=session)
        assert (await answer).stop_reason == "cancelled"
        editor.choice.set_result("allow")
        assert (await editor.say(session, "other")).stop_reason == "end_turn"
    assert not (place.folder / "no").exists()


async def test_a_question_that_was_withdrawn_cannot_be_cancelled(
    place: Place, serve: Serve
) -> None:
    """A message stops the turn that asks; the editor's `cancelled` for it spares the turn that runs."""
    serve(shell("touch no"), shell("echo ran"), Text("Something else."))
    async with editing(place) as editor:
        session = await editor.new(place)
        late, then = (asyncio.get_running_loop().create_future() for _ in range(2))
        editor.choice = late
        first = editor.say(session, "work")
        await editor.until(lambda: bool(editor.asked))
        editor.choice = then
        second = editor.say(session, "stop, do something else")
        assert (await first).stop_reason == "cancelled"
        await editor.until(lambda: len(editor.asked) == 2)
        late.set_result("cancelled")
        then.set_result("allow")
        assert (await second).stop_reason == "end_turn"
    assert not (place.folder / "no").exists()


async def test_prompts_while_a_turn_runs_follow_the_busy_mode(place: Place, serve: Serve) -> None:
    """Steered into the turn, queued behind it, or instead of it; each is answered when it is done."""
    doors = [Door(), Door()]
    server = serve(
        Text("first", door=doors[0]),
        Text("with the steer", door=doors[1]),
        Text("queued one"),
        Stall("long one"),
        Text("instead"),
    )
    async with editing(place) as editor:
        session = await editor.new(place)
        options = (
            await editor.agent.resume_session(cwd=str(place.folder), session_id=session)
        ).config_options
        assert {one.id: one.current_value for one in options} == {
            "mode": "ask",
            "busy": "steer",
            "model": "main",
        }
        first = editor.say(session, "begin")
        await asyncio.to_thread(server.wait_requests, 1)
        second = editor.say(session, "and mind the edge cases")
        await editor.until(lambda: "Steering" in editor.text(session))
        doors[0].open()
        await editor.until(lambda: "[Steered]" in editor.text(session))
        assert not second.done()
        third = editor.say(session, "/busy queue")
        assert (await third).stop_reason == "end_turn"
        fourth = editor.say(session, "what next?")
        await editor.until(lambda: "Queued #3" in editor.text(session))
        doors[1].open()
        answers = [await first, await second, await fourth]
        assert {answer.stop_reason for answer in answers} == {"end_turn"}
        await editor.say(session, "/busy interrupt")
        long = editor.say(session, "a long one")
        await editor.until(lambda: "long one" in editor.text(session))
        instead = editor.say(session, "something else now")
        assert (await long).stop_reason == "cancelled"
        assert (await instead).stop_reason == "end_turn"
    newest = server.requests[1].body["messages"][-1]["content"]
    assert "and mind the edge cases" in json.dumps(newest)
    for one in doors:
        one.close()


async def test_the_extensions_steer_and_command(place: Place, serve: Serve) -> None:
    """`_session/steering` reaches the running turn; what waits is listed and withdrawn as data."""
    door = Door()
    server = serve(Text("first", door=door), Text("then"))
    async with editing(place) as editor:
        session = await editor.new(place)
        idle = {"_meta": {"steering": {"idleBehavior": "promptRequired"}}}
        words = [{"type": "text", "text": "gently"}]
        steering = {"sessionId": session, "prompt": words}
        said = await editor.extension("session/steering", **steering, **idle)
        assert said == {"outcome": "promptRequired"}
        first = editor.say(session, "begin")
        await asyncio.to_thread(server.wait_requests, 1)
        assert await editor.extension("session/steering", **steering) == {"outcome": "injected"}
        await editor.say(session, "/busy queue")
        waits = editor.say(session, "later")
        await editor.until(lambda: "Queued" in editor.text(session))
        command = {"sessionId": session, "command": "/queue list"}
        listed = await editor.extension("steersman/command", **command)
        assert listed["data"]["items"][-1]["text"] == "later"
        await editor.say(session, "/queue pop")
        assert (await waits).stop_reason == "cancelled"
        door.open()
        assert (await first).stop_reason == "end_turn"
        with pytest.raises(RequestError, match="Method not found"):
            await editor.extension("session/unheard-of", sessionId=session)
    assert "gently" in json.dumps(server.requests[1].body["messages"][-1])
    door.close()


def test_what_acts_on_a_terminal_is_sent_as_json() -> None:
    """A line is JSON whatever is in it, also where standard output is a terminal."""
    lines: list[str] = []
    message = {"jsonrpc": "2.0", "id": 1, "error": {"data": "session/\x8dew \x1b[31m \u202e ü"}}
    run(LineTransport(asyncio.Queue(), lines.append).send(message))
    assert json.loads(audited(lines[0])) == message


async def test_what_is_no_folder_is_refused_in_words(place: Place, serve: Serve) -> None:
    """A null byte, a name that is too long, a relative path: to begin a session, and to list them."""
    serve()
    async with editing(place) as editor:
        for cwd in ("\0", "/" + "x" * 5_000, "relative", "/nowhere/at/all"):
            with pytest.raises(RequestError, match="no folder with an absolute path"):
                await editor.agent.list_sessions(cwd=cwd)
            with pytest.raises(RequestError, match="no folder with an absolute path"):
                await editor.agent.new_session(cwd=cwd, mcp_servers=[])
        assert (await editor.agent.list_sessions(cwd=str(place.folder))).sessions == []


async def test_a_session_that_is_loaded_at_work_is_told_whole(place: Place, serve: Serve) -> None:
    """What was said, what was streamed of the answer by then, and the rest: each once."""
    words = " ".join(f"word{number}" for number in range(60))
    serve(Text("The first answer."), Text(words, pause=0.05))
    async with editing(place) as editor:
        session = await editor.new(place)
        await editor.say(session, "one")
        asked = editor.say(session, "two")
        await editor.until(lambda: "word20 " in editor.text(session))
        seen = len(editor.updates)
        await editor.agent.load_session(cwd=str(place.folder), session_id=session)
        assert (await asked).stop_reason == "end_turn"
        editor.updates[:seen] = []
        assert editor.text(session).endswith(words)
        assert editor.text(session).count("word20 ") in (1, 2)  # once of what was on its way
        said = [one.content.text for one in editor.of("user_message_chunk")]
        assert said == ["one", "two"]


def test_after_a_kill_a_session_is_listed_loaded_told_again_and_closed(
    place: Place, serve: Serve, gate: Gate
) -> None:
    """No process is left, and nothing runs; the session resumes, and a closed one does not."""
    serve(Text("The first answer."), shell(gate.command), Text("Going on."))
    left: list[str] = []

    async def crash() -> None:
        async with editing(place) as editor:
            session = await editor.new(place)
            await editor.say(session, "one")
            left.append(session)
            editor.say(session, "two").add_done_callback(lambda one: one.exception())
            pid = await asyncio.to_thread(gate.wait)
            editor.process.send_signal(signal.SIGKILL)
            await editor.process.wait()
            await asyncio.to_thread(wait_gone, [pid])

    async def again() -> None:
        async with editing(place) as editor:
            listed = await editor.agent.list_sessions(cwd=str(place.folder))
            assert [session.session_id for session in listed.sessions] == left
            other = await editor.new(place)
            await editor.agent.load_session(cwd=str(place.folder), session_id=left[0])
            await editor.until(lambda: len(editor.of("user_message_chunk", left[0])) == 2)
            said = [one.content.text for one in editor.of("user_message_chunk", left[0])]
            assert said == ["one", "two"]
            text = editor.text(left[0])
            assert "The first answer." in text
            await editor.until(lambda: "not auto-resuming" in editor.text(left[0]))
            assert "Going on." not in editor.text(left[0])
            assert (await editor.say(left[0], "three")).stop_reason == "end_turn"
            assert "Going on." in editor.text(left[0])
            assert "Going on." not in editor.text(other)
            await editor.agent.close_session(session_id=left[0])
            with pytest.raises(RequestError, match="not open here"):
                await editor.say(left[0], "four")

    run(crash())
    run(again())
    assert place.stored(left[0])["state"] == "suspended"


@pytest.mark.nightly
async def test_what_goes_wrong_is_an_error_of_the_protocol_and_nothing_else_is_printed(
    place: Place, serve: Serve
) -> None:
    """A failing model, a line that is no JSON, an unknown session."""
    serve(Status(401))
    async with editing(place) as editor:
        session = await editor.new(place)
        with pytest.raises(RequestError, match="401"):
            await editor.say(session, "hello")
        with pytest.raises(RequestError):
            await editor.agent.load_session(cwd=str(place.folder), session_id="zzz")
    ran = place.run("acp", said='what?\n{"jsonrpc": "2.0", "id": 1, "method": "nothing"}\n')
    answers = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [answer["error"]["code"] for answer in answers] == [-32700, -32601]
    assert ran.returncode == 0


async def test_a_signal_saves_and_leaves(place: Place, serve: Serve) -> None:
    """TERM in the middle of a turn: the session is suspended, the code says which signal."""
    server = serve(Hang())
    async with editing(place) as editor:
        session = await editor.new(place)
        answer = editor.say(session, "work")
        await editor.until(lambda: bool(editor.of("available_commands_update")))
        await asyncio.to_thread(server.wait_requests, 1)
        editor.process.send_signal(signal.SIGTERM)
        assert await editor.process.wait() == 143
        answer.cancel()
    assert place.stored()["state"] == "suspended"


async def test_a_picture_reaches_a_model_that_takes_it(place: Place, serve: Serve) -> None:
    """An image of a prompt is sent as it is; one that is none, and an empty prompt, are refused."""
    server = serve(Text("A pixel."), model="images = true")
    async with editing(place) as editor:
        assert editor.about.agent_capabilities.prompt_capabilities.image
        session = await editor.new(place)
        picture = image_block(PIXEL, "image/png")
        for prompt in (
            [],
            [text_block(" ")],
            [image_block("AAAA", "image/png")],
            [picture] * 9,
        ):
            with pytest.raises(RequestError):
                await editor.agent.prompt(session_id=session, prompt=prompt)
        for prompt in ([picture], [picture, text_block("what is it?")]):
            await editor.agent.prompt(session_id=session, prompt=prompt)
    assert [str(request.body).count(PIXEL) for request in server.requests] == [1, 2]


async def test_nothing_is_done_before_the_handshake(place: Place, serve: Serve) -> None:
    """`session/new` and the like are refused until `initialize` was answered; then they work."""
    serve(Text("x"))
    async with editing(place, handshake=False) as editor:
        for early in (editor.new(place), editor.agent.list_sessions()):
            with pytest.raises(RequestError, match="initialize"):
                await early
        await editor.agent.initialize(protocol_version=PROTOCOL_VERSION)
        assert await editor.new(place)


def test_without_the_library_it_says_what_to_install(place: Place, serve: Serve) -> None:
    """The extra is named; the exit code is that of a usage error."""
    serve(Text("x"))
    code = "import sys; sys.modules['acp'] = None; from steersman.cli.main import main; main()"
    ran = executed([sys.executable, "-c", code, "acp"], env=place.environ)
    assert "[acp]" in ran.stderr
    assert ran.returncode == 2
