"""What a long result costs: the model receives its ends, and reads on in the file that has all of it."""

import re

from support.driver import Place
from support.model_server import ModelServer, Recorded, Text, Tools

RULES = """[permissions]
rules = [{ tool = "shell", do = "allow" }, { tool = "read", do = "allow" }]
"""


def test_a_long_output_is_sent_in_part_and_read_on_without_a_question(place: Place) -> None:
    """Of 600 kB of output the model is sent 12 KiB; `read` gives it a line from the middle."""
    results: list[str] = []

    def behave(request: Recorded) -> Text | Tools:
        newest = request.body["messages"][-1]
        if newest["role"] == "user":
            call = {"tool": "shell", "arguments": {"command": "seq 1 100000"}}
            return Tools([call])
        results.append(newest["content"])
        if len(results) > 1:
            return Text("Done.")
        file = re.search(r"whole output in (\S+): `read` it with `offset` (\d+)", newest["content"])
        path = file[1] if file is not None else "nowhere"
        return Tools([{"tool": "read", "arguments": {"path": path, "offset": 50_000, "limit": 1}}])

    with ModelServer(behave) as server:
        place.configure(server.base_url, rest=RULES)
        chat = place.chat("count")
        chat.wait("turn_ended", status="completed")
        assert not chat.seen("question")
        assert chat.close() == 0
    assert len(results[0].encode()) < 13_000
    assert results[0].startswith("1\n2\n")
    assert "\n99999\n100000\n" in results[0]
    assert results[1].startswith("50000\n")


def test_other_files_outside_the_folder_are_still_asked_about(place: Place) -> None:
    """Only the session's own output may be read there, not that of another session."""
    other = place.home / "state" / "output" / "another" / "t1.s1.c1.txt"
    answers = iter([Tools([{"tool": "read", "arguments": {"path": str(other)}}]), Text("Done.")])
    with ModelServer(lambda request: next(answers)) as server:
        place.configure(server.base_url, rest=RULES)
        chat = place.chat("look")
        question = chat.wait("question")
        assert question["tool"] == "read"
        chat.kill()


LIMITS = """[tools]
model_limits = { shell = "1 KiB" }
[permissions]
rules = [{ tool = "*", do = "allow" }]
[agents.clerk]
model = "main"
tools = ["read"]
model_limit = "3 KiB"
"""


def test_limits_of_a_tool_and_of_an_agent(place: Place) -> None:
    """A tool's own limit comes before that of an agent, and that before the general one."""
    (place.folder / "long.txt").write_text("some words\n" * 10_000)
    sizes: list[int] = []

    def behave(request: Recorded) -> Text | Tools:
        newest = request.body["messages"][-1]
        if newest["role"] == "tool":
            sizes.append(len(newest["content"]))
            return Text("Done.")
        tool, key, value = newest["content"].split(" ", 2)
        return Tools([{"tool": tool, "arguments": {key: value}}])

    with ModelServer(behave) as server:
        place.configure(server.base_url, rest=LIMITS)
        for agent, said in (
            ("assistant", "shell command cat long.txt"),
            ("assistant", "read path long.txt"),
            ("clerk", "read path long.txt"),
        ):
            assert place.run("chat", "--agent", agent, said).returncode == 0
    assert [size // 100 for size in sizes] == [5, 123, 31]


def test_a_long_report_of_a_subagent_is_read_on_without_a_question(place: Place, serve) -> None:
    """The parent receives both ends, and finds the rest in the file that is named."""
    report = "\n".join(f"star {number}" for number in range(5000))
    results: list[str] = []

    def behave(request: Recorded) -> Text | Tools:
        newest = request.body["messages"][-1]
        if newest["role"] == "user":
            if newest["content"] == "count the stars":
                return Text(report)
            task = {"task": "count the stars", "name": "kid"}
            return Tools([{"tool": "delegate", "arguments": task}])
        results.append(newest["content"])
        if len(results) > 1:
            return Text("Done.")
        found = re.search(
            r"whole output in (\S+): `read` it with `offset` (\d+)", newest["content"]
        )
        assert found is not None
        arguments = {"path": found[1], "offset": int(found[2]), "limit": 1}
        return Tools([{"tool": "read", "arguments": arguments}])

    with ModelServer(behave) as server:
        place.configure(server.base_url, rest=RULES)
        chat = place.chat("begin")
        chat.wait("turn_ended", status="completed", session=chat.session)
        assert not chat.seen("question")
        assert chat.close() == 0
    head = results[0].partition("\n[…")[0]
    assert len(results[0]) < 13_000
    assert head.startswith("star 0\n")
    assert results[0].endswith("\nstar 4999")
    last = int(head.rpartition(" ")[2])
    assert results[1].startswith(f"star {last + 1}\n")


WORKFLOW = """
[workflow]
name = "look"
[[step]]
id = "make"
run = ["seq", "1", "100000"]
[[step]]
id = "tell"
needs = ["make"]
agent = "assistant"
prompt = "First.\\n{{ steps.make.output }}\\nLast."
"""


def test_a_long_output_in_a_prompt_of_a_workflow_is_cut(place: Place, serve) -> None:
    """What is filled into a step's prompt is bounded; what stands around it is whole."""
    (place.folder / "look.toml").write_text(WORKFLOW)
    server = serve(Text("Fine."))
    assert place.run("run", "look.toml", "--yes").returncode == 0
    prompt = server.requests[0].prompt
    assert len(prompt) < 13_000
    assert prompt.startswith("First.\n1\n2\n")
    assert prompt.endswith("\n99999\n100000\nLast.")
    assert "characters left out]" in prompt
