"""The questions that are open, and those of them that a person has decided meanwhile.

A mode or an allowance is for the calls to come, of the session and its subagents. A call that waits for
an answer is one of them. One that a person holds is looked at itself, but a mode may refuse it.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..actors.decisions.queries import request_of
from ..actors.runtime import Runtime
from ..journal.child_record import at_work
from ..journal.codec import decode
from ..journal.record import SessionRecord
from ..machines import protocol as m
from ..machines.errors import UnknownSession
from ..machines.form import FORM


def open_questions(runtime: Runtime, session: str) -> Iterator[str]:
    """Give the open questions of a session, then those of its subagents that are at work."""
    try:
        record = decode(SessionRecord, runtime.inspect(session))
    except UnknownSession:
        return  # it has ended meanwhile
    yield from record.asked
    for child in at_work(record.children):
        yield from open_questions(runtime, child.session)


def may_settle(message: m.Message) -> bool:
    """Whether after this message a call may run, or be refused, that a question is open about."""
    match message:
        case m.PolicyChange(mode=mode):
            return bool(mode)
        case m.Answer(choice=choice):
            return choice == "always"
        case m.Allow(is_given=is_given):
            return is_given
        case _:
            return False


def settled(runtime: Runtime, session: str) -> Iterator[m.Answer]:
    """Give the answers to the open questions, of a session and its subagents, that are decided by now."""
    try:
        record = decode(SessionRecord, runtime.inspect(session))
        permit = runtime.describe(session).permit
    except UnknownSession:
        return  # it has ended meanwhile
    calls = record.running.calls.values() if record.running is not None else ()
    for call in calls:
        if call.state != "asking" or call.tool == FORM:
            continue
        found = permit(request_of(call))
        if found.do == "allow" and not call.is_hold:
            yield m.Answer(question=call.question, choice="allow", rule=found.rule)
        elif found.refusal:
            yield m.Answer(
                question=call.question, choice="deny", reason=found.refusal, rule=found.rule
            )
    for child in at_work(record.children):
        yield from settled(runtime, child.session)
