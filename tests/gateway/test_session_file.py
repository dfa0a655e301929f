"""What an import keeps of a session's entries."""

from typing import get_args

from steersman.gateway.views.session_file import _TALK, imported
from steersman.journal import entries as e
from steersman.journal.codec import encode_entry
from steersman.journal.entries import Entry
from steersman.journal.memory import MemoryStore

REWRITTEN = {e.SessionOpened, e.AllowanceGiven, e.GoalSet, e.ChildStarted}
LEFT_OUT = {
    *(e.PolicyChanged, e.LimitsGranted, e.AgentSessionKnown),
    *get_args(e.AnyRevertEntry),
    *get_args(e.AnyRunEntry),
}


def test_every_kind_of_entry_is_sorted() -> None:
    """A new kind is left out of an import until somebody says here that it is harmless, or what of it."""
    assert len(set(_TALK)) == len(_TALK)
    assert not set(_TALK) & (REWRITTEN | LEFT_OUT)
    assert {*_TALK} | REWRITTEN | LEFT_OUT == set(get_args(Entry))


def taken(*entries: Entry) -> list[object]:
    """Import a session with these entries behind its first, and return what is stored of them."""
    opened = e.SessionOpened(session="a1", folder="/", agent="assistant", model="m", system="Obey.")
    lines = [
        {"seq": number, "time": 1.0, "data": encode_entry(entry)}
        for number, entry in enumerate((opened, *entries), 1)
    ]
    store = MemoryStore()
    data = {"format": "steersman-session", "version": 1, "entries": lines}
    session, _ = imported(store, data, "file", "/home", "assistant")
    return [stored.data for stored in store.entries(session)][1:]


def test_a_revert_that_is_not_over_does_not_begin_here() -> None:
    """One that is over is history; one that was asked for is left out, like choices and grants."""
    asked, refused = (
        e.RevertAsked(id="r1", scope="last"),
        e.RevertRefused(id="r1", reason="nothing to revert"),
    )
    nothing = encode_entry(e.PolicyChanged())
    assert taken(asked) == [nothing]
    assert taken(asked, refused) == [encode_entry(asked), encode_entry(refused)]
    assert taken(e.LimitsGranted(user="ann"), e.AgentSessionKnown(session="x")) == [nothing] * 2
