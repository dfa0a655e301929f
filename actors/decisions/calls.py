"""The decisions of a turn about tool calls: which may start together, permission, intent, questions.

Calls that change nothing run side by side, all others one after another, each journalled before it
starts. An agent that is another program reports calls of its own; they are under the rules of the
session as far as the agent asks before it makes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ...journal import entries as e
from ...journal.entries import AgentSessionKnown, AllowanceGiven, CallReported
from ...journal.record import SessionRecord
from ...journal.turn_record import CALL_ENDS, CallRecord, TurnRecord
from ...machines import protocol as m
from ...machines.conversation import ToolRequest
from ...machines.form import FORM, filled
from ...machines.json_shape import parse_json
from .decision import NOTHING, Decision, answer, refusal
from .intake import HAND_BACK, handing_back
from .queries import DELEGATE, DISMISS, request_of
from .turning import refused

if TYPE_CHECKING:
    from ..environment import Environment, Permit


def next_calls(turn: TurnRecord, environment: Environment) -> list[CallRecord]:
    """Return the calls that start now: none while others run, several if they change nothing."""
    own = [call for call in turn.calls.values() if not call.within]
    if any(call.state in ("asking", "running", "stopping") for call in own):
        return []
    todo = [call for call in own if call.state == "requested"]
    found = todo[:1]
    if found and not environment.tool_policy.is_mutating(found[0].tool):
        for call in todo[1:]:
            if environment.tool_policy.is_mutating(call.tool):
                break
            found.append(call)
    return found


def begin(record: SessionRecord, call: CallRecord, environment: Environment) -> Decision:
    """Run a call, ask a person about it, or refuse it."""
    book, request = environment.tool_policy, request_of(call)
    fault = request.fault or book.fault(request)
    if fault:
        return Decision(entries=(refused(record.turn, call, "failed", fault),))
    permit = book.permit(request)
    turn = record.turns[record.turn]
    if request.tool == HAND_BACK and permit.do != "deny":
        # the queue decides about waiting messages; no person need be asked
        order = handing_back(turn.id, turn.epoch, turn.step, request)
        intended = _intended(turn, request, is_idempotent=False)
        return Decision(entries=(intended,), orders=(("queue", order),))
    match permit.do:
        case "allow":
            return _intend(record, request, environment, permit.path, permit.rule)
        case "ask" if environment.policy.can_ask:
            return Decision(entries=(_asked(turn, request, permit, environment),))
        case _:
            no = refused(turn.id, call, "denied", _denial(permit))
            return Decision(entries=(replace(no, is_unanswered=permit.do == "ask"),))


def _intended(
    turn: TurnRecord,
    request: ToolRequest,
    *,
    is_idempotent: bool,
    path: str = "",
    allowed_by: str = "",
    is_changed: bool = False,
) -> e.ToolIntended:
    return e.ToolIntended(
        turn=turn.id,
        step=turn.step,
        call=request.call,
        tool=request.tool,
        arguments=request.arguments,
        is_idempotent=is_idempotent,
        path=path,
        allowed_by=allowed_by,
        is_changed=is_changed,
    )


def _intend(
    record: SessionRecord,
    request: ToolRequest,
    environment: Environment,
    path: str,
    allowed_by: str = "",
    *,
    is_changed: bool = False,
) -> Decision:
    turn = record.turns[record.turn]
    is_idempotent = environment.tool_policy.is_idempotent(request.tool)
    intended = _intended(
        turn,
        request,
        is_idempotent=is_idempotent,
        path=path,
        allowed_by=allowed_by,
        is_changed=is_changed,
    )
    return Decision(entries=(intended,), effects=(_start(record, request, path),))


def _start(
    record: SessionRecord, request: ToolRequest, path: str
) -> m.RunTool | m.Delegate | m.Dismiss:
    turn, call, arguments = record.turns[record.turn], request.call, request.arguments
    if request.tool == DELEGATE:
        above = turn.ancestors
        return m.Delegate(
            turn=turn.id, epoch=record.epoch, call=call, arguments=arguments, ancestors=above
        )
    if request.tool == DISMISS:
        return m.Dismiss(turn=turn.id, epoch=turn.epoch, call=call, arguments=arguments)
    return m.RunTool(
        turn=turn.id,
        epoch=turn.epoch,
        call=call,
        tool=request.tool,
        arguments=arguments,
        path=path,
        is_again=_is_again(turn, request),
    )


def _is_again(turn: TurnRecord, request: ToolRequest) -> bool:
    """Whether an earlier call of the turn with this tool and path failed."""
    path = request.arguments.get("path")
    return any(
        call.tool == request.tool and call.state == "failed" and call.arguments.get("path") == path
        for call in turn.calls.values()
        if call.id != request.call
    )


def _asked(
    turn: TurnRecord, request: ToolRequest, permit: Permit, environment: Environment
) -> e.QuestionAsked:
    return e.QuestionAsked(
        turn=turn.id,
        call=request.call,
        question=m.question_id(environment.path, request.call),
        tool=request.tool,
        arguments=request.arguments,
        rule=permit.rule,
        source=permit.source,
        why=permit.why,
        path=permit.path,
        is_outside=permit.is_outside,
        is_hold=permit.is_hold,
    )


def _denial(permit: Permit) -> str:
    """Say why a call may not run."""
    if permit.do == "deny":
        return permit.refusal or f"a rule forbids it: {permit.rule}"
    why = f"{permit.rule}; {permit.why}" if permit.why else permit.rule
    allowing = "`--yes` or a rule of [permissions] allows it"
    return f"it needs permission ({why}) and no person can be asked; {allowing}"


# Answers ------------------------------------------------------------------------------------------


def no_answer(message: m.Answer, choices: Sequence[str] = m.CHOICES) -> str:
    """Say that a choice is none, and which there are."""
    return f"`{message.choice}` is no answer; there are: {', '.join(choices)}"


def answered(record: SessionRecord, message: m.Answer, environment: Environment) -> Decision:
    """Carry out a person's answer to a question."""
    turn = record.running
    calls = turn.calls.values() if turn is not None else ()
    asking = [call for call in calls if call.state == "asking"]
    found = [call for call in asking if call.question == message.question]
    if turn is None or not found:
        others = ", ".join(f"`{call.question}`" for call in asking)
        open_now = f"; open: {others}" if others else ""
        return refusal(f"no question `{message.question}` is open{open_now}")
    if record.state != "busy" or any(stop.state == "planned" for stop in record.stops.values()):
        return refusal("the turn is being stopped")
    call, choice = found[0], message.choice.strip().lower()
    is_form = call.tool == FORM
    choices = m.CHOICES_OF_HOLD if call.is_hold else m.CHOICES_OF_FORM if is_form else m.CHOICES
    if choice not in choices:
        return refusal(no_answer(message, choices))
    if is_form and choice == "answer":
        return _filled(turn, call, message)
    if choice == "change":
        return _changed(record, call, message, environment)
    given = _always(choice, message, call, environment)
    if isinstance(given, str):
        return refusal(given)
    said = e.QuestionAnswered(
        turn=turn.id,
        question=message.question,
        choice=choice,
        user=message.user,
        rule=message.rule,
    )
    is_allowed = choice in ("allow", "always")
    if call.within:
        follows = _answer_agent(turn, call, is_allowed)
    elif is_allowed:
        path = call.asked.path if call.asked is not None else ""
        follows = _intend(record, request_of(call), environment, path, message.rule)
    elif choice == "answer":
        why = f"a person answers in its place: {message.reason}"
        follows = Decision(entries=(refused(turn.id, call, "skipped", why),))
    else:
        why = f"the user said no{': ' + message.reason if message.reason else ''}"
        follows = Decision(entries=(refused(turn.id, call, "denied", why),))
    return Decision(entries=(said, *given)) + follows + Decision(reply=answer())


def _filled(turn: TurnRecord, call: CallRecord, message: m.Answer) -> Decision:
    """Hand on what a person filled in, if it fits the form."""
    content = filled(call.arguments.get("schema") or {}, message.reason)
    if isinstance(content, str):
        return refusal(content)
    said = e.QuestionAnswered(
        turn=turn.id, question=message.question, choice="answer", user=message.user
    )
    begun = _intended(turn, request_of(call), is_idempotent=False)
    word = m.AnswerAgent(
        turn=turn.id, epoch=turn.epoch, inner=call.id, is_allowed=True, content=content
    )
    return Decision(entries=(said, begun), effects=(word,), reply=answer())


def _changed(
    record: SessionRecord, call: CallRecord, message: m.Answer, environment: Environment
) -> Decision:
    """Run a call that was held with the arguments of a person; what is denied stays so."""
    turn = record.turns[record.turn]
    try:
        arguments = parse_json(message.reason)
    except ValueError as error:
        return refusal(f"the arguments are no JSON: {error}")
    if not isinstance(arguments, dict):
        return refusal("the arguments are no JSON object")
    request = replace(request_of(call), arguments=arguments, fault="")
    if fault := environment.tool_policy.fault(request):
        return refusal(f"with these arguments it makes no sense: {fault}")
    permit = environment.tool_policy.permit(request)
    if permit.do == "deny":
        return refusal(_denial(permit))
    said = e.QuestionAnswered(
        turn=turn.id, question=message.question, choice="change", user=message.user
    )
    runs = _intend(record, request, environment, permit.path, is_changed=True)
    return Decision(entries=(said,)) + runs + Decision(reply=answer())


def _always(
    choice: str, said: m.Answer, call: CallRecord, environment: Environment
) -> tuple[e.Entry, ...] | str:
    """Remember what is allowed from now on, or say why that does not fit."""
    if choice != "always":
        return ()
    found = environment.tool_policy.allowance(request_of(call), said.reason)
    if isinstance(found, str):
        return found
    tool, pattern = found
    return (AllowanceGiven(tool=tool, pattern=pattern, user=said.user),)


# Agents that are other programs -------------------------------------------------------------------


def agent_told(turn: TurnRecord, message: m.AgentBound | m.AgentCallEnded) -> Decision:
    """Take in what an agent says of itself, or of the end of a call of its own."""
    match message:
        case m.AgentBound(session=session):
            return Decision(entries=(AgentSessionKnown(session=session),))
        case m.AgentCallEnded(inner=inner, status=status):
            call = turn.calls.get(inner)
            if call is None or call.state in CALL_ENDS:
                return NOTHING
            return Decision(
                entries=(
                    e.ToolEnded(
                        turn=turn.id, call=inner, tool=call.tool, end=m.CallEnd(status=status)
                    ),
                )
            )


def agent_called(turn: TurnRecord, message: m.AgentCalled, environment: Environment) -> Decision:
    """Take in that an agent makes a call of its own, or wants to and waits for an answer."""
    request = message.request
    call, tool = request.call, request.tool
    told = CallReported(
        turn=turn.id,
        step=turn.step,
        within=message.call,
        call=call,
        tool=tool,
        arguments=request.arguments,
    )
    begun = _intended(turn, request, is_idempotent=False)
    if not message.asks:
        return Decision(entries=(told, begun))
    permit = environment.tool_policy.permit(request)
    match permit.do:
        case "allow" if tool != FORM:  # which nobody but a person can fill in
            word = m.AnswerAgent(turn=turn.id, epoch=turn.epoch, inner=call, is_allowed=True)
            return Decision(entries=(told, begun), effects=(word,))
        case "ask" | "allow" if environment.policy.can_ask:
            permit = replace(permit, is_hold=False)  # what another program runs is its own
            return Decision(entries=(told, _asked(turn, request, permit, environment)))
        case _:
            why = _denial(permit)
            no = e.ToolRefused(
                turn=turn.id,
                call=call,
                tool=tool,
                status="denied",
                reason=why,
                is_unanswered=permit.do != "deny",
            )
            word = m.AnswerAgent(turn=turn.id, epoch=turn.epoch, inner=call, is_allowed=False)
            return Decision(entries=(told, no), effects=(word,))


def _answer_agent(turn: TurnRecord, call: CallRecord, is_allowed: bool) -> Decision:
    word = m.AnswerAgent(turn=turn.id, epoch=turn.epoch, inner=call.id, is_allowed=is_allowed)
    if is_allowed:
        begun: e.Entry = _intended(turn, request_of(call), is_idempotent=False)
    else:
        begun = e.ToolRefused(
            turn=turn.id, call=call.id, tool=call.tool, status="denied", reason="the user said no"
        )
    return Decision(entries=(begun,), effects=(word,))
