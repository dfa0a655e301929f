"""`/copy`, `/context`, `/init`, templates and skills."""

import json

import pytest
from support.driver import Place
from support.model_server import Text, Tools, shell

ANSWER = "Two ways:\n\n```python\nprint(1)\n```\n\nor\n\n~~~\nls\n~~~\n"


def last_text(server) -> str:
    """The newest message that the model was sent."""
    return str(server.requests[-1].body["messages"][-1]["content"])


@pytest.mark.checks_data("/copy", "/context")
def test_an_answer_is_copied_and_the_window_explained(place: Place, serve) -> None:
    """All of it, or one block; by part, with what the server counted and the window."""
    serve(Text(ANSWER), model="context_window = 50000")
    (place.folder / "AGENTS.md").write_text("Be brief. " * 40)
    chat = place.chat()
    assert chat.ask("/copy")["ok"] is False
    chat.completes("how?")
    assert chat.ask("/copy")["data"]["text"] == ANSWER
    assert chat.ask("/copy 2")["data"]["text"] == "ls\n"
    assert chat.ask("/copy 3")["ok"] is False
    found = chat.ask("/context")
    parts = found["data"]["parts"]
    assert 90 < parts["AGENTS.md"] < 300
    assert parts["tools"] > 200
    assert parts["answers and calls"] >= len(ANSWER) // 4
    assert found["data"]["estimated"] == sum(parts.values())
    assert (found["data"]["window"], found["data"]["messages"]) == (50000, 2)
    assert found["data"]["counted"] > 0
    assert "% full" in found["text"]


@pytest.mark.checks_data("/init")
def test_init_has_the_agent_write_the_file(place: Place, serve) -> None:
    """By a turn, whose write is asked about as any other."""
    write = {"tool": "write", "arguments": {"path": "AGENTS.md", "content": "make test\n"}}
    server = serve(Tools([write]), Text("Written."))
    chat = place.chat()
    assert "AGENTS.md" in chat.ask("/init")["data"]["message"]
    question = chat.wait("question")
    assert question["tool"] == "write"
    assert "Write the file AGENTS.md" in last_text(server)
    chat.answer(question, "allow")
    chat.wait("turn_ended", status="completed")
    assert (place.folder / "AGENTS.md").read_text() == "make test\n"


def test_templates_are_sent_with_their_arguments(place: Place, serve) -> None:
    """One's own at once, a project's once it is trusted; their words decide nothing."""
    server = serve(Text("Well."))
    own, project = place.home / "prompts", place.folder / ".steersman" / "prompts"
    for folder in (own, project):
        folder.mkdir(parents=True)
    (own / "fix.md").write_bytes(  # as an editor on Windows writes it
        b"\xef\xbb\xbf---\r\ndescription: Fix a bug\r\n---\r\nStop guessing. Fix $1 in $ARGUMENTS."
    )
    (own / "plain.md").write_text("Review this.")
    (own / "queue.md").write_text("never")
    (project / "ours.md").write_text("Ours: $ARGUMENTS")
    (project / "link.md").symlink_to(place.home / "config.toml")
    chat = place.chat()
    assert chat.causes("/fix parser now", "accepted")["as"] == "turn"
    chat.wait("turn_ended", status="completed")
    assert last_text(server).endswith("Stop guessing. Fix parser in parser now.")
    chat.completes("/plain carefully")
    assert last_text(server).endswith("Review this.\n\ncarefully")
    assert chat.causes("/ours x", "rejected")["reason"] == "unknown_command"
    assert chat.ask("/help")["data"]["templates"] == ["fix", "plain"]
    (place.folder / "steersman.toml").write_text("")
    assert place.run("trust", "--yes").returncode == 0
    chat.completes("/ours x")
    assert last_text(server).endswith("Ours: x")
    assert "link" not in chat.ask("/help")["data"]["templates"]


def test_skills_are_told_and_read_without_a_question(place: Place, serve) -> None:
    """The model is told the name and description; the file is read on demand, nothing else beside it."""
    skill = place.home / "skills" / "release"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text(
        "---\nname: release\ndescription: How to release.\n---\nTag it.\n"
    )
    (place.home / "skills" / "secret.txt").symlink_to(place.home / "config.toml")
    reads = [
        {"tool": "read", "arguments": {"path": str(path)}}
        for path in (skill / "SKILL.md", place.home / "skills" / "secret.txt")
    ]
    server = serve(Tools(reads), Text("Done."))
    chat = place.chat("release it")
    question = chat.wait("question")
    assert question["arguments"] == reads[1]["arguments"]
    chat.answer(question, "deny")
    chat.wait("turn_ended", status="completed")
    told = json.dumps(server.requests[0].body["messages"])
    assert f"- release: How to release. ({skill / 'SKILL.md'})" in told
    assert "Tag it." not in told
    assert "Tag it." in json.dumps(server.requests[-1].body["messages"])


SKILL = """---
name: tally
description: >-
  How to count,
  and when.
compatibility: wc
allowed-tools:
  - Read
  - Bash(wc *), Bash(touch:*), *, outside
---
Count it.
"""


def test_a_skill_allows_its_tools_in_a_turn_that_read_it(place: Place, serve) -> None:
    """Its own, as it was at the start; not before it is read, in no later turn, and against no rule."""
    skill = place.home / "skills" / "tally" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text(SKILL)

    reads = Tools([{"tool": "read", "arguments": {"path": str(skill)}}])
    rules = '[permissions]\nrules = [{ tool = "shell", match = "touch keep", do = "ask" }]\n'
    server = serve(
        *(shell("wc -c early"), reads, shell("wc -c a"), shell("touch b")),
        *(shell("touch keep"), shell("rm b"), Text("Done.")),
        *(shell("wc -c late"), Text("Done.")),
        rest=rules,
    )
    chat = place.chat("count it")
    for line in ("wc -c early", "touch keep", "rm b"):
        question = chat.wait("question")
        assert question["arguments"]["command"] == line
        skill.write_text(SKILL.replace("touch", "rm"))  # too late for this session
        chat.answer(question, "deny")
    chat.wait("turn_ended", status="completed")
    assert (place.folder / "b").exists()
    assert "- tally: How to count, and when. Needs: wc (" in json.dumps(server.requests[0].body)
    assert chat.causes("again", "question")["arguments"]["command"] == "wc -c late"
