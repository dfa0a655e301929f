"""Choosing a routing table for a session: permanent, with a notice at each start if unsafe."""

from pathlib import Path

import pytest
from gateway.conftest import Begin

from steersman.gateway.client import SessionClient
from steersman.gateway.commands.command import Reply
from steersman.gateway.host.host import Host
from steersman.journal.recovery import load_record
from steersman.machines.errors import ConfigError
from steersman.machines.policy import RoutesChoice
from steersman.machines.routes import STEERSMAN
from steersman.workflows.table_file import named_table

UNSAFE = "/routes use never-cancel --unsafe"


def folder(host: Host) -> Path:
    """The project of a host's test."""
    return host.paths.config.parent / "project"


def say(conversation: SessionClient, text: str) -> Reply:
    """Say a command and return its reply."""
    reply = conversation.say(text)
    assert reply is not None
    return reply


def test_a_choice_holds_from_the_next_message_on(begin: Begin) -> None:
    """The running session's actors have the new table when the command has answered."""
    host = begin()
    conversation = host.begin(folder(host))
    live = host.runtime.sessions[conversation.session]
    assert live.environment.dispositions is STEERSMAN.dispositions
    reply = say(conversation, UNSAFE)
    assert (reply.ok, reply.data["table"]) == (True, "never-cancel")
    assert "does not keep these rules: a stop reaches every descendant" in reply.text
    assert live.environment.deliveries is named_table("never-cancel").deliveries
    assert load_record(host.store, conversation.session).routes == RoutesChoice(
        table="never-cancel", may_be_unsafe=True
    )
    assert say(conversation, "/routes").data["table"] == "never-cancel"
    assert say(conversation, "/routes use steersman").ok
    assert live.environment.deliveries is STEERSMAN.deliveries


def test_an_unsafe_table_is_refused_without_the_word(begin: Begin) -> None:
    """The reply names the rule and an example, and nothing is journalled."""
    host = begin()
    conversation = host.begin(folder(host))
    before = load_record(host.store, conversation.session).seq
    reply = say(conversation, "/routes use cancel-on-message")
    assert not reply.ok
    assert "a converse message never stops a child; but intent converse" in reply.text
    assert not say(conversation, "/routes use no-such-table").ok
    assert not say(conversation, "/routes nonsense").ok
    assert load_record(host.store, conversation.session).seq == before


def test_a_choice_that_no_longer_fits_is_loud_and_can_be_taken_back(begin: Begin) -> None:
    """The configuration has changed since: the session does not start, but can be told otherwise."""
    host = begin()
    session = host.begin(folder(host)).session
    say(host.conversation(session), UNSAFE)
    host.close()
    route = '[[route]]\nname = "children-go-on"\nmessage = "converse"\n'
    again = begin(f'{route}deliver = [{{ to = "self", as = "queue" }}]')
    with pytest.raises(ConfigError, match="`children-go-on` is the name of a shipped row"):
        again.resume(session)
    assert say(again.tend(session), "/routes use steersman").ok
    again.runtime.leave(session)
    again.resume(session)
