"""What a long result costs: the model receives its ends, and reads on in the file that has all of it."""

import re

from support.driver import Place
from support.model_server import ModelServer, Recorded, Text, Tools

RULES = """[permissions]
rules = [{ tool = "shell", do = "allow" }, { tool = "read", do = "allow" }]
"""


def test_a_long_output_is_sent_in_part_and_read_on_without_a_question(place: Place) -> None:
    """Of 600 kB of output the model is sent 16 KiB; `read` gives it a line from the middle."""
    results: list[str] = []

    def behave(request: Recorded) -> Text | Tools:
        newest = request.body["messages"][-1]
        if newest["role"] == "user":
            call = {"tool": "shell", "arguments": {"command": "seq 1 100000"}}
            return Tools([call])
        results.append(newest["content"])
        if len(results) > 1:
            return Text("Done.")
        file = re.search(r"whole output in (\S+): `read` it", newest["content"])
        path = file[1] if file is not None else "nowhere"
        return Tools([{"tool": "read", "arguments": {"path": path, "offset": 50_000, "limit": 1}}])

    with ModelServer(behave) as server:
        place.configure(server.base_url, rest=RULES)
        chat = place.chat()
        chat.send("count")
        chat.wait("turn_ended", status="completed")
        assert not chat.seen("question")
        assert chat.close() == 0
    assert len(results[0].encode()) < 17_000
    assert results[0].startswith("1\n2\n")
    assert "\n99999\n100000\n" in results[0]
    assert results[1].startswith("50000\n")


def test_other_files_outside_the_folder_are_still_asked_about(place: Place) -> None:
    """Only the session's own output may be read there, not that of another session."""
    other = place.home / "state" / "output" / "another" / "t1.s1.c1.txt"
    answers = iter([Tools([{"tool": "read", "arguments": {"path": str(other)}}]), Text("Done.")])
    with ModelServer(lambda request: next(answers)) as server:
        place.configure(server.base_url, rest=RULES)
        chat = place.chat()
        chat.send("look")
        question = chat.wait("question")
        assert question["tool"] == "read"
        chat.kill()
