"""Choosing a routing table for a session: permanent, with a notice at each start if unsafe."""

import pytest
from gateway.conftest import Begin, replied

from steersman.gateway.client import SessionClient
from steersman.journal.recovery import load_record
from steersman.machines.errors import ConfigError
from steersman.machines.policy import RoutesChoice
from steersman.machines.routes import STEERSMAN
from steersman.workflows.table_file import named_table

UNSAFE = "/routes use never-cancel --unsafe"


def test_a_choice_holds_from_the_next_message_on(conversation: SessionClient) -> None:
    """The running session's actors have the new table when the command has answered."""
    host = conversation.host
    live = host.runtime.sessions[conversation.session]
    assert live.environment.dispositions is STEERSMAN.dispositions
    reply = replied(conversation, UNSAFE)
    assert (reply.ok, reply.data["table"]) == (True, "never-cancel")
    assert "does not keep these rules: a stop reaches every descendant" in reply.text
    assert live.environment.deliveries is named_table("never-cancel").deliveries
    assert load_record(host.store, conversation.session).routes == RoutesChoice(
        table="never-cancel", may_be_unsafe=True
    )
    assert replied(conversation, "/routes").data["table"] == "never-cancel"
    assert replied(conversation, "/routes use steersman").ok
    assert live.environment.deliveries is STEERSMAN.deliveries


def test_an_unsafe_table_is_refused_without_the_word(conversation: SessionClient) -> None:
    """The reply names the rule and an example, and nothing is journalled."""
    before = load_record(conversation.store, conversation.session).seq
    reply = replied(conversation, "/routes use cancel-on-message")
    assert not reply.ok
    assert "a converse message never stops a child; but intent converse" in reply.text
    assert not replied(conversation, "/routes use no-such-table").ok
    assert not replied(conversation, "/routes nonsense").ok
    assert load_record(conversation.store, conversation.session).seq == before


def test_a_choice_that_no_longer_fits_is_loud_and_can_be_taken_back(
    begin: Begin, conversation: SessionClient
) -> None:
    """The configuration has changed since: the session does not start, but can be told otherwise."""
    session = conversation.session
    replied(conversation, UNSAFE)
    conversation.host.close()
    route = '[[route]]\nname = "children-go-on"\nmessage = "converse"\n'
    again = begin(f'{route}deliver = [{{ to = "self", as = "queue" }}]')
    with pytest.raises(ConfigError, match="`children-go-on` is the name of a shipped row"):
        again.resume(session)
    assert replied(again.tend(session), "/routes use steersman").ok
    again.runtime.leave(session)
    again.resume(session)
