"""The story of one message."""

from pathlib import Path
from string import Formatter
from typing import get_args

from gateway.conftest import Begin
from msgspec import structs

from steersman.gateway.client import SessionClient
from steersman.gateway.views.story import _PLAIN, StoryView, story_of
from steersman.gateway.wording.redaction import Redactor
from steersman.journal.codec import kind_of
from steersman.journal.entries import Entry


def story_of_last(talk: SessionClient) -> StoryView:
    """Tell of the last message of a session, after all that was said."""
    row = talk.store.load(talk.record().id).row
    return story_of(talk.store, row, "last", Redactor({}), is_owned=True)[0]


def test_a_message_that_was_held(begin: Begin, tmp_path: Path) -> None:
    """That the queue was held and let go belongs to the story of what waited in it."""
    host = begin()
    (tmp_path / "answers.toml").write_text("[[answer]]\ndelay = inf\n")
    talk = host.begin(tmp_path / "project")
    talk.say("now")
    talk.say("later", "queue")
    talk.say("/queue hold")
    talk.say("/queue resume")

    story = story_of_last(talk)

    assert [hop["kind"] for hop in story["hops"]] == ["queued", "queue_held", "queue_released"]
    talk.say("/queue edit 2 sooner")
    story = story_of_last(talk)
    assert (story["message"]["text"], story["hops"][-1]["text"]) == ("sooner", 'edited: "sooner"')


def test_sentences_speak_of_what_their_entries_have() -> None:
    """A field that an entry does not have would be told as nothing."""
    kinds = {kind_of(kind): kind for kind in get_args(Entry)}
    for kind, form in _PLAIN.items():
        fields = {field.name for field in structs.fields(kinds[kind])}
        assert {name for _, name, _, _ in Formatter().parse(form) if name} <= fields, kind
