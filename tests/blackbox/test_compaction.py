"""A conversation that outgrows the model's window is summed up, told, and nothing of it is lost."""

import re
from typing import Any

import pytest
from support.driver import Chat, Place
from support.model_server import Door, Hang, ModelServer, Status, Text, Tools
from support.patience import seconds

WINDOW = "context_window = 16000"
LONG = Text("x" * 20_000, usage=None)
"""5,000 tokens by the estimate of four characters each; three of them do not fit."""
SUM = "Sum it up now"
SUMMARY = Text("You talked of three things.", match=SUM, times=0)
TOO_LONG = {"error": {"message": "maximum context length is 9 tokens", "code": "context_length"}}
PROVIDERS = ("openai", "anthropic")


def said(server: ModelServer) -> list[list[tuple[str, str]]]:
    """Return what each request held, apart from the instructions: who, and how it begins."""
    return [
        [_plain(message) for message in request.body["messages"]] for request in server.requests
    ]


def _plain(message: dict[str, Any]) -> tuple[str, str]:
    content = message["content"]
    parts = [{"text": content}] if isinstance(content, str) else (content or [])
    text = "".join(str(part.get("text", part.get("content", ""))) for part in parts)
    return message["role"], text


def talk(chat: Chat, *texts: str) -> None:
    """Say these things, one turn after another."""
    for text in texts:
        chat.completes(text)


def compact(chat: Chat, command: str) -> None:
    """Have what was said summed up; the command's result may come before or after what it does."""
    chat.causes(command, "compacted", how="summary")
    chat.wait("turn_ended", status="completed")
    chat.wait_any("result", name="compact", ok=True)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_older_turns_are_summed_up_when_the_window_is_nearly_full(
    place: Place, serve, provider: str
) -> None:
    """On the wire each request begins with the one before, but for the one behind the summary."""
    server = serve(SUMMARY, LONG, provider=provider, model=WINDOW)
    chat = place.chat()
    talk(chat, "one", "two", "three")
    assert not chat.seen("compacted")
    talk(chat, "four")
    done = chat.seen("compacted")[0]
    assert (done["how"], done["summary"]) == ("summary", "You talked of three things.")
    assert done["after"] < done["before"] / 2
    notices = [event["text"] for event in chat.seen("notice")]
    assert any("window is" in notice and "% full" in notice for notice in notices)
    talk(chat, "five")
    chat.kill()
    again = place.chat("--continue")
    talk(again, "six")
    requests = said(server)
    [at] = [number for number, one in enumerate(requests) if SUM in one[-1][1]]
    after = [row for row in requests[at + 1] if row[0] != "system"]
    assert "You talked of three things." in after[0][1]
    assert after[-1] == ("user", "four")
    for number in range(1, len(requests)):
        if number not in (at, at + 1):
            before = requests[number - 1]
            assert requests[number][: len(before)] == before
    assert next(row for row in requests[at] if row[0] != "system") == ("user", "one")
    assert [role for role, _ in after] == ["user", "assistant", "user"]


@pytest.mark.checks_data("/compact")
def test_compact_at_will(place: Place, serve) -> None:
    """At once when nothing runs, after the turn when one does; what a person wants of it is heard."""
    door = Door()
    server = serve(SUMMARY, Text("Fine."), Text("Fine.", door=door), Text("Fine."))
    chat = place.chat()
    assert not chat.ask("/compact")["ok"]
    talk(chat, "one")
    compact(chat, "/compact the colours")
    assert "there are no messages since the last summary" in chat.ask("/compact")["text"]
    assert "What matters most: the colours" in said(server)[1][-1][1]
    chat.causes("two", "text")
    assert chat.ask("/compact")["data"]["runs"] is False
    assert chat.ask("/compact")["data"]["runs"] is False
    chat.causes({"text": "three", "as": "queue"}, "accepted", text="three")
    door.open()
    chat.wait("compacted")
    assert chat.close() == 0
    assert chat.seen("notice", text="Not summed up: there are no messages since the last summary.")
    last = [row for row in said(server)[-1] if row[0] != "system"]
    assert len(last) == 3
    assert last[-1] == ("user", "three")


def test_a_person_reads_the_whole_conversation(place: Place, serve) -> None:
    """History, export and `sessions show` have the compacted messages, and no summary among them."""
    serve(SUMMARY, Text("Fine."))
    chat = place.chat()
    talk(chat, "one")
    compact(chat, "/compact")
    talk(chat, "two")
    whole = [("user", "one"), ("assistant", "Fine."), ("user", "two"), ("assistant", "Fine.")]
    shown = chat.ask("/history")["data"]["messages"]
    assert [(message["role"], message["text"]) for message in shown] == whole
    chat.ask("/export here.md")
    assert chat.close() == 0
    shown = place.data("sessions", "show", "last")["messages"]
    assert [(message["role"], message["text"]) for message in shown] == whole
    exported = place.run("sessions", "export", "last").stdout
    for text in (exported, (place.folder / "here.md").read_text()):
        assert re.findall(r"^## (\w+)\n\n(.*)$", text, re.MULTILINE) == whole


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_refusal_for_length_is_compacted_once(place: Place, serve, provider: str) -> None:
    """The server's error starts a compaction if the window is not known; a second one fails the turn."""
    server = serve(SUMMARY, Text("Fine."), Status(400, TOO_LONG), provider=provider)
    chat = place.chat()
    talk(chat, "one")
    chat.causes("two", "compacted")
    error = chat.wait("error", code="model_failed")
    assert "maximum context length is 9 tokens" in error["text"]
    chat.wait("turn_ended", status="failed")
    assert [SUM in one[-1][1] for one in said(server)] == [False, False, True, False]


def test_without_a_summary_the_oldest_results_are_left_out(place: Place, serve) -> None:
    """It is said why, and what a person and the agent said stays as it is."""
    (place.folder / "long.txt").write_text("word\n" * 1500)
    call = {"tool": "read", "arguments": {"path": "long.txt"}}
    server = serve(
        Status(400, {"error": {"message": "no summaries here"}}, match=SUM, times=0),
        Tools([call] * 3, match="begin"),
        LONG,
        Text("Fine."),
        model="context_window = 12000",
    )
    chat = place.chat("--yes")
    talk(chat, "begin", "go on")
    [done] = chat.seen("compacted")
    assert (done["how"], done["turn"]) == ("pruned", "t2")
    assert done["reason"].endswith("no summaries here")
    last = said(server)[-1]
    assert any(text.startswith("[left out to make room") for _, text in last)
    assert [text for role, text in last if role == "user"] == ["begin", "go on"]


def test_old_results_go_before_anything_is_summed_up(place: Place, serve) -> None:
    """Where the old results of tools take the room, no summary is asked for, and the newest stay."""
    (place.folder / "long.txt").write_text("word\n" * 1500)
    call = {"tool": "read", "arguments": {"path": "long.txt"}}
    server = serve(
        SUMMARY,
        Tools([call] * 3, match="begin"),
        Tools([call] * 3, match="more"),
        Text("Fine.", usage=None),
        model="context_window = 15500",
    )
    chat = place.chat("--yes")
    talk(chat, "begin", "more", "go on")
    [done] = chat.seen("compacted")
    assert (done["how"], done["turn"], done["reason"]) == ("pruned", "t3", None)
    requests = said(server)
    assert not any(SUM in request[-1][1] for request in requests)
    results = [text for role, text in requests[-1] if role == "tool"]
    assert [text.startswith("[left out to make room") for text in results] == [True] * 2 + [
        False
    ] * 4
    assert chat.seen("notice", text=f"Left out 2 old results of tools: {_size(done)}.")


def _size(done: dict[str, Any]) -> str:
    return f"about {done['before']:,} tokens are now {done['after']:,}"


def test_what_cannot_fit_is_not_sent(place: Place, serve) -> None:
    """A single message that is longer than the window is refused before it costs anything."""
    server = serve(Text("Fine."), model=WINDOW)
    chat = place.chat()
    ended = chat.causes("word " * 30_000, "turn_ended", status="failed")
    assert "window 16,000" in ended["reason"] or "not shortened" in ended["reason"]
    assert not server.requests
    talk(chat, "short")


def test_a_compaction_can_be_stopped_and_survives_a_crash(place: Place, serve) -> None:
    """Stopped or killed in the middle it has changed nothing, and is done when it is resumed."""
    server = serve(Hang(match=SUM, times=2), SUMMARY, Text("Fine."))
    chat = place.chat()
    talk(chat, "one")
    chat.causes("/compact", "notice", text="Summing up the conversation…")
    server.wait_requests(2)
    chat.causes("/stop", "turn_ended", status="interrupted")
    assert server.requests[1].closed.wait(seconds(5))
    assert not chat.seen("compacted")
    chat.send("/queue resume")
    server.wait_requests(3)
    chat.kill()
    again = place.chat("--continue")
    again.wait("recovered")
    assert not again.seen("compacted")
    again.causes("/queue resume", "compacted", how="summary")
    again.wait("turn_ended", status="completed")
