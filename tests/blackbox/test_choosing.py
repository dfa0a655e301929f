"""Choosing a session or a model: titles, lists with numbers, and a command line without a command."""

import json

from support.driver import Chat, Place
from support.model_server import Text


def said(place: Place, text: str) -> Chat:
    """Have one message answered in a session of its own, and leave it."""
    chat = place.chat()
    chat.completes({"text": text})
    assert chat.close() == 0
    return chat


def test_sessions_have_the_first_words_as_a_title(place: Place, serve) -> None:
    """Lists show them; a name that a person gave comes first; words, or a number, choose a session."""
    serve(Text("Well."))
    zod = said(place, "move to\nzod " + "and then " * 20)
    colours = said(place, "which colour?")
    assert place.run("sessions", "rename", zod.session, "the migration").returncode == 0
    rows = place.data("sessions", "list")["sessions"]
    title = "move to zod and then and then and then and then and then …"
    assert {row["id"]: (row["name"], row["title"]) for row in rows} == {
        zod.session: ("the migration", title),
        colours.session: ("", "which colour?"),
    }
    listing = place.run("sessions", "list").stdout
    assert "the migration" in listing
    assert "which colour?" in listing
    assert "zod" not in listing

    chat = place.chat()
    listed = chat.ask("/resume")
    # renaming was the last that happened to the first one
    assert [row["id"] for row in listed["data"]["sessions"]] == [zod.session, colours.session]
    assert f" 2. {colours.session}  which colour?  (just now)" in listed["text"]
    assert chat.ask("/resume 3")["ok"] is False
    assert chat.ask("/resume colour which")["data"]["session"] == colours.session
    number = [row["id"] for row in chat.ask("/resume")["data"]["sessions"]].index(zod.session) + 1
    assert chat.ask(f"/resume {number}")["data"]["session"] == zod.session


def test_a_title_holds_no_secret(place: Place, serve) -> None:
    """Where titles are listed, what looks like a key is not."""
    serve(Text("Well."))
    said(place, "my key is sk-abcdefghijklmnop1234")
    chat = place.chat()
    shown = place.run("sessions", "list").stdout + json.dumps(chat.ask("/resume"))
    assert "my key is" in shown
    assert "sk-abcdefgh" not in shown


def test_resume_without_an_id_lists_where_nobody_can_choose(place: Place, serve) -> None:
    """The error has the numbered list, and the exit code of a wrong usage."""
    serve(Text("Well."))
    assert place.run("chat", "--resume").returncode == 1
    chat = said(place, "which colour?")
    for words in (
        ("chat", "--resume"),
        ("chat", "--resume", "--plain"),
        ("chat", "--resume", "--json"),
    ):
        ran = place.run(*words)
        assert (ran.returncode, f"1. {chat.session}  which colour?" in ran.stderr) == (2, True)


def test_no_command_is_a_chat(place: Place, serve) -> None:
    """Lines that are piped in are said, as by `steersman chat`."""
    serve(Text("Blue."))
    ran = place.run(said="which colour?\n")
    assert (ran.returncode, "Blue." in ran.stdout) == (0, True), ran.stderr
