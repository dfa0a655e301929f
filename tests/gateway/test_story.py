"""The story of one message."""

from collections.abc import Callable
from pathlib import Path

from steersman.gateway.host.host import Host
from steersman.gateway.views.story import story_of
from steersman.gateway.wording.redaction import Redactor


def test_a_message_that_was_held(begin: Callable[..., Host], tmp_path: Path) -> None:
    """That the queue was held and let go belongs to the story of what waited in it."""
    host = begin()
    (tmp_path / "answers.toml").write_text("[[answer]]\ndelay = inf\n")
    talk = host.begin(tmp_path / "project")
    talk.say("now")
    talk.say("later", "queue")
    talk.say("/queue hold")
    talk.say("/queue resume")
    talk.record()
    row = host.store.load(talk.session).row

    story, _ = story_of(host.store, row, "last", Redactor({}), is_owned=True)

    assert [hop["kind"] for hop in story["hops"]] == ["queued", "queue_held", "queue_released"]
