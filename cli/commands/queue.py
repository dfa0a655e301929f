"""`steersman queue …`, `agents …`, `goal …`, `send`, `stop`: a session's work, from another terminal."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

from ...gateway.commands import agents as subagents
from ...gateway.commands import goal as goals
from ...gateway.commands import queue as verbs
from ...gateway.commands import saved_queue, talk
from ...gateway.commands.command import DECLARED
from ...gateway.events.contract import AcceptedEvent
from ...gateway.home.home import SHORTEST_ID
from ...gateway.outcome import Outcome
from ...gateway.reach import SessionReach
from ...gateway.views.saved_queues import Saved, read_saved, stored_queue
from ...gateway.wording.acknowledgement import discarding, waiting_text
from ...gateway.wording.formats import runs_text
from ...gateway.wording.redaction import redactor_of
from ...gateway.wording.terminal import clean
from ...journal.codec import decode_entry
from ...journal.entries import ToolRefused
from ...journal.record import SessionRecord, apply
from ...journal.recovery import load_record, recovered
from ...journal.revert_record import OVER
from ...journal.store import RowFilter, Store
from ...machines.delivery import Cause
from ...machines.errors import StoreDamaged, UnknownSession, UsageError
from ...ports.tools.text import counted
from ...workflows.paths import Paths
from ..exit_codes import DONE, FAILED, INTERRUPTED, LIMITED, UNANSWERED
from ..options import WAYS, Json, Of, Session, Way, argument, flag, group, option
from ..output import show, show_document, show_either, warn
from ..stored import stored
from .session_command import find_for_listing, in_shell, run_on, session_here, show_receipt, twin

Place = Annotated[str, argument("ID", "The same as --session.", show_default=False)]

queue = group("queue", "steersman queue list")


@queue.command("list")
def queue_list(
    place: Place = "",
    session: Of = "",
    is_all: Annotated[
        bool, flag("--all", "Include messages whose turn was replaced by another one.")
    ] = False,
    as_json: Json = False,
) -> int:
    """List the running and queued messages, without changing them.

    Example: steersman queue list last
    """
    with stored(os.environ) as store:
        row = find_for_listing(store, _either(place, session))
        data = stored_queue(store, row, is_all=is_all)
        apart = len(stored_queue(store, row, is_all=True)["items"]) - len(data["items"])
        is_open = row is not None and store.is_owned(row.session)
    if row is not None and is_open and not data["items"]:  # a saved queue may stand for it there
        return run_on(row.session, verbs.list_queue(is_all=is_all), as_json=as_json)
    if as_json:
        show_document(data)
        return DONE
    if row is None:
        return DONE
    lines = saved_queue.saved_lines(data)
    offered = saved_queue.offered_lines(data["items"], is_open=is_open)
    lines += [in_shell(line, row.session) for line in offered]
    has_begun = any(item["state"] != "offered" for item in data["items"])
    if data["state"] == "held" and (has_begun or data.get("children")):
        way = "/queue resume` in a chat on this session"
        way = f"steersman run --resume {row.session}`" if row.workflow else way
        is_over = row.run in OVER
        gone = discarding(row.session, row.run)
        held = [f"#{item['number']}" for item in data["items"] if item.get("held")]
        waiting = [item for item in data["items"] if item["state"] == "pending"]
        which = f" {', '.join(held)}" if 0 < len(held) < len(waiting) else ""
        runs = runs_text(data.get("again"))
        lines.append(f"Held{which}: {gone}." if is_over else f"Held{which}: `{way} runs {runs}.")
    elif stopped := data.get("children"):
        names = ", ".join(stopped)
        lines.append(f"`steersman queue resume --session {row.session}` goes on with {names}.")
    if apart:
        more = counted(apart, "message")
        lines.append(f"{more} besides can be resumed: `steersman queue list --all`")
    show("\n".join(lines) if lines else f"The queue of {data['session']} is empty.")
    return DONE


for _verb in ("add", "edit", "move", "pop", "clear", "keep", "steer", "hold", "on", "off"):
    queue.command(_verb)(twin(DECLARED[f"queue {_verb}"]))


@queue.command("resume")
def queue_resume(
    which: Annotated[
        str, argument("N|ID", "The message to run first, or a session; if left out, the oldest.")
    ] = "",
    session: Of = "",
    as_json: Json = False,
) -> int:
    """Resume a held queue: interrupted messages first, then the waiting ones.

    Example: steersman queue resume
    """
    if which.isdigit() and len(which) < SHORTEST_ID:
        return run_on(session, verbs.resume_queue(which), as_json=as_json)
    return run_on(_either(which, session), verbs.resume_queue(), as_json=as_json)


@queue.command("discard")
def queue_discard(place: Place = "", session: Of = "", as_json: Json = False) -> int:
    """Delete the saved queue, including interrupted messages.

    Example: steersman queue discard 8e496f95
    """
    return run_on(_either(place, session), saved_queue.discard_queue(), as_json=as_json)


@queue.command("restore")
def queue_restore(
    place: Place = "",
    session: Of = "",
    everywhere: Annotated[bool, flag("--list", "List all saved queues.")] = False,
    as_json: Json = False,
) -> int:
    """List the saved queue of a session, or of all sessions; changes nothing.

    Example: steersman queue restore --list
    """
    if everywhere:
        _list_saved(as_json=as_json)
        return DONE
    return queue_list(_either(place, session), as_json=as_json)


queue.command("export")(twin(saved_queue.export_queue))
queue.command("import")(twin(saved_queue.import_queue))


def _either(place: str, session: str) -> str:
    """Return the session that was named, in one way or the other. Raises `UsageError`."""
    if place and session and place != session:
        raise UsageError(f"`{place}` or `{session}`?", "name one session")
    return place or session


def _list_saved(*, as_json: bool) -> None:
    """Print the saved queues of all sessions that no process has open, newest activity first."""
    with stored(os.environ) as store:
        rows = store.sessions(RowFilter(has_work=True))
        rows = [row for row in rows if not store.is_owned(row.session)]
        saved = list[Saved]()
        for row in rows:
            try:
                saved.append(read_saved(store, row))
            except StoreDamaged as fault:
                warn(f"{fault.message} (`steersman home check` says more)")
    found = [queue.view() for queue in saved if not queue.is_empty]
    lines: list[str] = []
    for view in found:
        lines.append(f"{view['session']}  {view['folder']}")
        lines += [f"  {line}" for line in saved_queue.saved_lines(view)]
    said = "\n".join(lines) or "No session has a saved queue."
    show_either({"saved": found}, said, as_json)


def send(
    session: Session,
    text: Annotated[str, argument("TEXT", "A message, or a slash command.")],
    way: Way = "auto",
    user: Annotated[str, option("NAME", "The name of the sender; optional.")] = "",
    is_waiting: Annotated[
        bool, flag("--wait", "Wait for the end of its turn, print the answer, end as it did.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Send a message to a session; if no program has it open, it is queued.

    Example: steersman send last "and the tests" --as queue
    """
    if way not in WAYS:
        raise UsageError(f"there is no `--as {way}`", f"ways: {', '.join(WAYS)}")
    if not text.strip():
        raise UsageError("there is no message to send", 'steersman send last "and the tests"')
    with stored(os.environ) as store:
        row = session_here(store, session)
        reach = SessionReach(Paths.of(os.environ), os.environ, store)
        client = reach.remote(row.session, user=user)
        receipt = client.say(text, way)
        is_open = store.is_owned(row.session)
        if is_waiting and is_open and receipt["type"] == "accepted" and not client.waits_because:
            return _await_outcome(reach, row.session, receipt, as_json=as_json)
    code = show_receipt(receipt, as_json=as_json)
    if is_waiting and receipt["type"] == "accepted":
        code = FAILED  # nobody answers now
    if client.waits_because:
        warn(client.waits_because)
    elif receipt["type"] == "accepted" and not is_open:
        warn(waiting_text(row.session, is_run=bool(row.workflow)))
    return code


_BECAME = {
    "steered": "the subagent that runs has taken it in",
    "held": "it waits; `steersman queue resume --session {}` runs it",
    "interrupted": "`steersman queue resume --session {}` goes on with it",
}
"""What is said of an outcome that has no answer."""


def _await_outcome(
    reach: SessionReach, session: str, receipt: AcceptedEvent, *, as_json: bool
) -> int:
    """Wait for what becomes of a message; print it, and return the exit code that says it."""
    from ...gateway.follow import OutcomesElsewhere

    outcomes = OutcomesElsewhere(reach, session)
    waiting = outcomes.of(receipt["id"], with_turn=True, after=receipt["seq"], hear=_tell_question)
    try:
        outcome = asyncio.run(waiting)
    except UnknownSession as gone:  # what was said is in the queue all the same
        if as_json:
            show_document({**receipt, "outcome": None})
        warn(f"{gone.message}: {waiting_text(session, is_run=False)}")
        return FAILED
    if as_json:
        fields = ("status", "turn", "text", "reason")
        show_document({**receipt, "outcome": {name: getattr(outcome, name) for name in fields}})
    elif outcome.status == "done":
        show(outcome.text)
    else:
        why = outcome.reason or _BECAME.get(outcome.status, "").format(session)
        warn(f"{outcome.status}{why and ': '}{why}")
    return _code_of(reach.store, session, outcome)


def _tell_question(event: Mapping[str, Any]) -> None:
    """Say that a person is asked meanwhile, and how it is answered from here."""
    if event["type"] == "question":
        how = f"`steersman sessions answer {event['session']} {event['id']} ANSWER`"
        warn(f"A question waits for a person: {clean(event['tool'])}; {how}")


def _code_of(store: Store, session: str, outcome: Outcome) -> int:
    """Return how a turn ended as an exit code, by the session's journal."""
    turn = load_record(store, session).turns.get(outcome.turn)
    if turn is not None and turn.cause in (Cause.BUDGET, Cause.NO_PROGRESS):
        return LIMITED
    if outcome.status not in ("done", "steered"):
        return INTERRUPTED if outcome.status == "interrupted" else FAILED
    entries = (decode_entry(stored.data) for stored in store.entries(session))
    is_unanswered = any(
        isinstance(entry, ToolRefused) and entry.turn == outcome.turn and entry.is_unanswered
        for entry in entries
    )
    return UNANSWERED if is_unanswered else DONE


def stop(session: Session, as_json: Json = False) -> int:
    """Stop the running turn of a session and everything that it started.

    Example: steersman stop last
    """
    return run_on(session, talk.stop(), as_json=as_json)


# Subagents ----------------------------------------------------------------------------------------


agents = group("agents", "steersman agents list last")


@agents.command("list")
def agents_list(session: Session = "last", as_json: Json = False) -> None:
    """List the subagents of a session and their subagents, without changing it.

    Example: steersman agents list last
    """
    with stored(os.environ) as store:
        row = find_for_listing(store, session)
        redactor = redactor_of(os.environ, row.folder if row else "")
        found = (
            subagents.agents_of(partial(subagents.stored_state, store), row.session, redactor)
            if row
            else []
        )
    if as_json:
        show_document({"agents": found})
    elif row:
        show(subagents.draw_agents(found))


agents.command("show")(twin(subagents.show_agent, Session))
agents.command("stop")(twin(subagents.stop_agent, Session))
agents.command("wrap-up")(twin(subagents.wrap_up_agent, Session))


# The goal -----------------------------------------------------------------------------------------


goal = group("goal", "steersman goal status")


@goal.command("set")
def goal_set(
    text: Annotated[str, argument("TEXT", "The condition to reach.")],
    gate: Annotated[
        list[str] | None, option("COMMAND", "Must succeed first; may be repeated.")
    ] = None,
    turns: Annotated[int | None, option("N", "Maximum number of turns.")] = None,
    tokens: Annotated[int | None, option("N", "Maximum number of tokens.")] = None,
    minutes: Annotated[float | None, option("N", "Maximum number of minutes.")] = None,
    is_next: Annotated[bool, flag("--next", "Add it after the present goals.")] = False,
    session: Of = "",
    as_json: Json = False,
) -> int:
    """Let a session work until a judge decides that a goal is met.

    Example: steersman goal set "all tests pass" --gate "npm test" --turns 10
    """
    if not text.strip():
        raise UsageError("a goal needs a text", 'steersman goal set "all tests pass"')
    if turns is not None and turns < 1:
        raise UsageError(
            f"a goal takes at least 1 turn, not {turns}", "its own first message is turn 1"
        )
    order = goals.next_goal if is_next else goals.goal
    call = order(text, gates=tuple(gate or ()), turns=turns, tokens=tokens, minutes=minutes)
    return run_on(session, call, as_json=as_json)


@goal.command("status")
def goal_status(place: Place = "", session: Of = "", as_json: Json = False) -> None:
    """Show the progress of the goal, without changing the session.

    Example: steersman goal status last
    """
    with stored(os.environ) as store:
        row = find_for_listing(store, _either(place, session))
        record = load_record(store, row.session) if row else SessionRecord()
        is_owned = bool(row and store.is_owned(row.session))
        if record.goals.is_pursued and row and not is_owned:
            as_found = recovered(record)  # by its next owner
            apply(record, as_found, record.seq + 1, record.updated)
    data = redactor_of(os.environ, record.folder).data(
        {"session": record.id or None, **goals.goal_data(record)}
    )
    if as_json:
        show_document(data)
    elif row and is_owned:
        show(in_shell(goals.draw_goal(data), row.session))
    elif row:
        way = f"`/goal resume` in `steersman chat --resume {row.session}`"
        show(
            goals.draw_goal(data, way)
            if data["state"]
            else in_shell(goals.draw_goal(data), row.session)
        )


goal.command("pause")(twin(goals.pause_goal))
goal.command("resume")(twin(goals.resume_goal))
goal.command("clear")(twin(goals.clear_goal))
