"""The machines of what lives in a session: states, events, guards and effects as data."""

from collections.abc import Iterable
from typing import Final

from .machine import Machine, State, Transition

# The machine of a supervised child, after OTP's supervisor behaviour ------------------------------


CHILD = Machine(
    name="child",
    doc="An actor as its supervisor sees it.",
    initial="running",
    states=(
        State("running", "It takes messages."),
        State("stopping", "It was told to end because a sibling failed; awaited."),
        State("suspended", "It is down; its mailbox is kept for the next incarnation."),
        State("ended", "It is down and stays so.", is_final=True),
        State("given_up", "It failed too often; its supervisor failed with it.", is_final=True),
    ),
    transitions=(
        Transition("stop", ("running",), "stopping"),
        Transition("stop", ("stopping", "suspended"), ignored="already on its way"),
        Transition("down", ("running",), "suspended", ("must_restart",)),
        Transition("down", ("running",), "ended"),
        Transition("down", ("stopping",), "suspended", ("must_restart",)),
        Transition("down", ("stopping",), "ended"),
        Transition("restart", ("suspended",), "running"),
        Transition("give_up", ("running", "stopping", "suspended"), "given_up"),
    ),
    control=("stop",),
)


# The machine of a subagent: a session that works for another, as its parent knows it --------------
# A side talk is one, too. What the child session itself does is a matter of its own journal; here is
# what its parent may rely on, across crashes.


SUBAGENT = Machine(
    name="subagent",
    doc="A session that works for another one, from being asked for to its result.",
    initial="waiting",
    states=(
        State("waiting", "It begins as soon as there is room for it."),
        State("working", "It was given its task."),
        State("stopping", "It was told to end; everything it started is being stopped."),
        State("interrupted", "It was stopped, or its program died; it can go on from there."),
        State("completed", "It gave its result.", is_final=True),
        State("failed", "It could not go on; what it had is kept.", is_final=True),
        State("cancelled", "It was stopped for good; what it had is kept.", is_final=True),
        State("disconnected", "What it ran on went away.", is_final=True),
    ),
    transitions=(
        Transition("admit", ("waiting",), "working"),
        Transition("cancel", ("waiting", "interrupted"), "cancelled"),
        Transition("cancel", ("working",), "stopping"),
        Transition("cancel", ("stopping",)),
        Transition("detach", ("waiting", "working")),
        Transition("detach", ("stopping", "interrupted"), ignored="it does not work"),
        Transition("interrupted", ("waiting", "working", "stopping"), "interrupted"),
        Transition("complete", ("working", "stopping"), "completed"),
        Transition("fail", ("waiting", "working", "stopping", "interrupted"), "failed"),
        Transition("stopped", ("waiting", "working", "stopping", "interrupted"), "cancelled"),
        Transition("disconnect", ("waiting", "working", "stopping"), "disconnected"),
        Transition("resume", ("interrupted",), "working"),
    ),
    control=("cancel", "detach"),
)

AT_WORK = ("waiting", "working", "stopping")
"""The states in which a child counts as one that works."""


def meant(names: Iterable[str], name: str) -> tuple[str, ...]:
    """Return who of those at work is meant by a name.

    A name that an interrupted child still bears is given on with a number: `kid-2` is meant by
    `kid`, too, while no `kid` works.
    """
    there = tuple(names)
    exact = tuple(one for one in there if one == name)
    return exact or tuple(
        one for one in there if one.startswith(f"{name}-") and one[len(name) + 1 :].isdecimal()
    )


# The machine of an interrupt's receipt: from the order to stop until everything is dead -----------


INTERRUPT = Machine(
    name="interrupt",
    doc="What became of one order to stop.",
    initial="planned",
    states=(
        State("planned", "It was accepted; the tools that run end first."),
        State("stopping", "It took effect; what the turn started is being stopped."),
        State("stopped", "Everything that the turn started is dead.", is_final=True),
        State("overtaken", "Another one came first, or the turn ended by itself.", is_final=True),
        State("called_off", "It was taken back before it took effect.", is_final=True),
    ),
    transitions=(
        Transition("take_effect", ("planned",), "stopping"),
        Transition("call_off", ("planned",), "called_off"),
        Transition("call_off", ("stopping",), ignored="it took effect"),
        Transition("overtake", ("planned", "stopping"), "overtaken"),
        Transition("finish", ("stopping",), "stopped"),
        Transition("finish", ("planned",), "overtaken"),
    ),
    control=("call_off",),
)


# The judge's machine: what happens at one boundary of a goal, from the end of a turn to a verdict


JUDGE = Machine(
    name="judge",
    doc="One look at a goal, after a turn.",
    initial="gating",
    states=(
        State("gating", "Commands run that must succeed before anybody is asked."),
        State("asking", "The model that judges was asked."),
        State("comparing", "The agent repeats itself: it is found out whether a file has changed."),
        State("judged", "There is a verdict.", is_final=True),
        State("unusable", "There is none that can be used.", is_final=True),
        State("stopped", "Somebody stopped it first.", is_final=True),
    ),
    transitions=(
        Transition("gate_passed", ("gating",), effects=("next",)),
        Transition("gate_failed", ("gating",), "comparing", ("is_repeated",), ("compare",)),
        Transition("gate_failed", ("gating",), "judged", effects=("tell",)),
        Transition("gates_done", ("gating",), "judged", ("gates_decide",), ("tell",)),
        Transition("gates_done", ("gating",), "asking", effects=("ask",)),
        Transition("verdict", ("asking",), "comparing", ("is_repeated",), ("compare",)),
        Transition("verdict", ("asking",), "judged", effects=("tell",)),
        Transition("no_verdict", ("asking",), "unusable", effects=("tell",)),
        Transition("compared", ("comparing",), "judged", effects=("tell",)),
        Transition("stop", ("gating", "asking", "comparing"), "stopped"),
    ),
    control=("stop",),
)


# The machine of a queue item: one message that a person sent, from arrival to its end -------------
# A steer is an item, too: it waits, pending, for a boundary of the turn that it names, or of the
# children that it was handed on to. What is offered never runs by itself.


ITEM = Machine(
    name="item",
    doc="One message in a session's queue.",
    initial="pending",
    states=(
        State("pending", "It waits: for its turn, or as a steer for a boundary."),
        State("offered", "A side talk's or a child's answer: to steer, keep or drop."),
        State("running", "Its turn runs."),
        State("interrupted", "Its turn was interrupted; it can be resumed from there."),
        State("superseded", "Another message replaced its turn; only its number resumes it."),
        State("steered", "A running turn took it in.", is_final=True),
        State("done", "Its turn is complete.", is_final=True),
        State("failed", "Its turn failed.", is_final=True),
        State("withdrawn", "A person took it back.", is_final=True),
    ),
    transitions=(
        Transition("start", ("pending", "interrupted"), "running"),
        Transition("steer", ("pending",), "steered"),
        Transition("requeue", ("pending",)),
        Transition("address", ("pending",)),
        Transition("address", ("offered",), "pending"),
        Transition("offer", ("pending",), "offered"),
        Transition("keep", ("offered",), "pending"),
        Transition("edit", ("pending", "interrupted")),
        Transition("complete", ("running",), "done"),
        Transition("fail", ("running",), "failed"),
        Transition("interrupt", ("running",), "interrupted"),
        Transition("supersede", ("running",), "superseded"),
        Transition("resume", ("superseded",), "interrupted"),
        Transition(
            "interrupt",
            ("pending", "interrupted", "superseded", "offered"),
            ignored="it does not run",
        ),
        Transition("withdraw", ("pending", "interrupted", "superseded", "offered"), "withdrawn"),
        Transition("withdraw", ("running",), ignored="it runs; stop it first"),
    ),
    control=("interrupt", "withdraw"),
)


# The queue's machine: whether what waits may run by itself ----------------------------------------


QUEUE = Machine(
    name="queue",
    doc="A session's waiting messages, in order.",
    initial="open",
    states=(
        State("open", "The next waiting message runs as soon as nothing else does."),
        State(
            "held",
            "What waits stays, in order, until a person says resume; what is said to a turn "
            "that began since is not held.",
        ),
        State("closed", "The session is final.", is_final=True),
    ),
    transitions=(
        Transition("accept", ("open", "held")),
        Transition("hold", ("open",), "held"),
        Transition("hold", ("held",), ignored="already held"),
        Transition("release", ("held",), "open"),
        Transition("release", ("open",), ignored="not held"),
        Transition("close", ("open", "held"), "closed"),
    ),
    control=("hold", "release", "close"),
)


# The machine of a tool call: an intent that is durable before anything starts, and one result
# A crash between the two leaves `unknown`: shown, told to the model, and never run again by itself.


CALL = Machine(
    name="call",
    doc="One tool call of one model answer.",
    initial="requested",
    states=(
        State("requested", "The model asked for it; nothing was decided."),
        State("asking", "A person is asked whether it may run."),
        State("running", "The intent is durable; it runs or is about to."),
        State("stopping", "It was told to end; its processes are being stopped."),
        State("done", "It returned.", is_final=True),
        State("failed", "It ran and failed, or could not run.", is_final=True),
        State("timed_out", "It was ended at its time limit.", is_final=True),
        State("killed", "It was ended by a cancel.", is_final=True),
        State("denied", "It was not allowed.", is_final=True),
        State("skipped", "The turn ended before it could start.", is_final=True),
        State(
            "unknown", "The program died while it ran: nobody knows how it ended.", is_final=True
        ),
    ),
    transitions=(
        Transition("ask", ("requested",), "asking"),
        Transition("intend", ("requested", "asking"), "running"),
        Transition("deny", ("requested", "asking"), "denied"),
        Transition("reject", ("requested",), "failed"),
        Transition("succeed", ("running", "stopping"), "done"),
        Transition("fail", ("running", "stopping"), "failed"),
        Transition("time_out", ("running", "stopping"), "timed_out"),
        Transition("kill", ("running", "stopping"), "killed"),
        Transition("stop", ("running",), "stopping"),
        Transition("stop", ("requested", "asking"), "skipped"),
        Transition("stop", ("stopping",), ignored="already stopping"),
        Transition("lose", ("running", "stopping"), "unknown"),
        Transition("lose", ("requested", "asking"), "skipped"),
    ),
    control=("stop",),
)


# The turn's machine: the agent loop ---------------------------------------------------------------
# A turn begins at a boundary. At each boundary it takes in the steers that wait, then calls the model;
# an answer with tool calls leads to `acting` and from there to the next boundary; an answer without
# them leads to a boundary, too, at which the turn is complete unless a steer waits. An answer that is
# cut off for a steer leads to a boundary at which the turn goes on.
#
# When the model's window is nearly full, older turns are summed up: at the first boundary, which lies
# between two turns, or, where a call would be or was refused for its length, at a later one. A turn
# that was asked for by `/compact` does nothing else.


LIVE = ("boundary", "calling", "compacting", "acting")

TURN = Machine(
    name="turn",
    doc="One run of the agent loop, from a message to the agent's last word.",
    initial="boundary",
    states=(
        State("boundary", "Between calls: steers enter here and nowhere else."),
        State("calling", "The model was asked."),
        State("compacting", "Older turns are being summed up; no other call is open."),
        State("acting", "Tool calls of one answer run, or wait for permission."),
        State("completed", "The agent said its last word.", is_final=True),
        State("interrupted", "A cancel ended it; it can be resumed.", is_final=True),
        State("failed", "The model failed, or a limit was reached.", is_final=True),
    ),
    transitions=(
        Transition("proceed", ("boundary",), "calling", ("!steps_spent",), ("call_model",)),
        Transition("proceed", ("boundary",), "failed", effects=("end",)),
        Transition("finish", ("boundary",), "completed", effects=("end",)),
        Transition("answer", ("calling",), "acting", ("has_calls",), ("start_calls",)),
        Transition("answer", ("calling",), "boundary", effects=("close_boundary",)),
        Transition("cut", ("calling",), "boundary", effects=("open_boundary",)),
        Transition("model_failed", ("calling",), "failed", effects=("end",)),
        Transition("compact", ("boundary",), "compacting", effects=("summarise",)),
        Transition("overflow", ("calling",), "compacting", effects=("summarise",)),
        Transition("compacted", ("compacting",), "boundary", effects=("open_boundary",)),
        Transition("calls_done", ("acting",), "boundary", effects=("open_boundary",)),
        Transition("interrupt", LIVE, "interrupted", (), ("stop",)),
        Transition("fail", LIVE, "failed", effects=("end",)),
    ),
    control=("interrupt",),
)


# The session's machine: one conversation, of which at most one turn runs --------------------------
# `interrupting` lasts from the stop until everything the turn started is dead: the next turn never runs
# beside the remains of the last.


SESSION = Machine(
    name="session",
    doc="One conversation with its history, queue and turns.",
    initial="idle",
    states=(
        State("idle", "Nothing runs. Whether the queue is held is the queue's state."),
        State("busy", "A turn runs."),
        State("interrupting", "The turn was told to stop; what it started is being stopped."),
        State(
            "leaving", "What runs is being stopped, then everything is on disk and nobody there."
        ),
        State("suspended", "Nobody is there; everything is on disk."),
        State("finalizing", "What runs is being stopped, then the session ends for good."),
        State("finalized", "Over for good.", is_final=True),
    ),
    transitions=(
        Transition("turn_started", ("idle",), "busy"),
        Transition("turn_ended", ("busy", "interrupting"), "idle"),
        Transition("turn_ended", ("leaving", "finalizing")),
        Transition("interrupt", ("busy",), "interrupting"),
        Transition(
            "interrupt", ("interrupting", "leaving", "finalizing"), ignored="already stopping"
        ),
        Transition("interrupt", ("idle", "suspended"), ignored="nothing runs"),
        Transition("stopped", ("interrupting",), "idle"),
        Transition("stopped", ("leaving", "finalizing")),
        Transition("suspend", ("idle", "busy", "interrupting"), "leaving"),
        Transition("suspend", ("suspended", "leaving", "finalizing"), ignored="already leaving"),
        Transition("settle", ("leaving",), "suspended"),
        Transition("settle", ("finalizing",), "finalized"),
        Transition("resume", ("suspended",), "idle"),
        Transition("resume", ("idle",), ignored="already here"),
        Transition(
            "finalize", ("idle", "suspended", "busy", "interrupting", "leaving"), "finalizing"
        ),
        Transition("finalize", ("finalizing",), ignored="already finalizing"),
        Transition("recover", ("busy", "interrupting", "leaving"), "idle"),
        Transition("recover", ("idle", "suspended"), "idle"),
        Transition("recover", ("finalizing",)),
    ),
    control=("interrupt", "suspend", "finalize"),
)


# The goal's machine: work that goes on over many turns, until a judge says that it is done --------
# A goal ends in every case: it is achieved, it is found impossible, it is cleared, or it pauses, by
# itself or because somebody said so. Whatever pauses it is a reason that people are told. Only a person
# lets a paused goal go on, and that grants its budget anew.


GOAL = Machine(
    name="goal",
    doc="Something to be reached, turn by turn, and judged after each.",
    initial="lined_up",
    states=(
        State("lined_up", "It begins when the goals before it are achieved."),
        State("active", "Turns run for it, or a judge looks at the last one."),
        State("waiting", "Nothing is done for it until what the judge named has happened."),
        State("paused", "It goes on when a person says so; the reason is known."),
        State("achieved", "The judge said that it is done.", is_final=True),
        State("impossible", "The judge said that it can't be done.", is_final=True),
        State("cleared", "A person dropped it, or its session ended.", is_final=True),
    ),
    transitions=(
        Transition("begin", ("lined_up",), "active"),
        Transition("continue", ("active",)),
        Transition("wait", ("active",), "waiting"),
        Transition("wake", ("waiting",), "active"),
        Transition("achieve", ("active",), "achieved"),
        Transition("give_up", ("active",), "impossible"),
        Transition("pause", ("active", "waiting"), "paused"),
        Transition("pause", ("paused",), ignored="paused already"),
        Transition("pause", ("lined_up",), ignored="not begun yet"),
        Transition("resume", ("paused", "waiting"), "active"),
        Transition("resume", ("active",), ignored="it is active"),
        Transition("clear", ("lined_up", "active", "waiting", "paused"), "cleared"),
    ),
    control=("pause", "clear"),
)

PURSUED: Final = ("active", "waiting")
"""The states in which something is done for it, or will be, without anybody saying so."""

REASONS: Final = {
    "user": "a person paused it",
    "interrupt": "work was stopped",
    "budget": "its budget is spent",
    "no_progress": "the agent says the same again, and no file has changed",
    "judge_unusable": "the judge gives no usable verdict",
    "failing": "turn after turn failed",
}
"""Why a goal is paused."""


# The machine of a workflow's run: a session whose turn is not an agent's, but the steps of a file
# An interrupted run goes on at the items where it was, a failed one with what failed and what waited for
# that; one that succeeded is over.


RUN = Machine(
    name="run",
    doc="One run of a workflow, across interrupts and crashes.",
    initial="pending",
    states=(
        State("pending", "It was opened; no step has begun."),
        State("running", "Steps run, or wait for others."),
        State("interrupting", "No step begins any more; what runs is being stopped."),
        State("interrupted", "Nothing runs; it can go on where it was."),
        State("succeeded", "Every step came to a good end, or was not needed.", is_final=True),
        State("failed", "A step failed, and nothing took care of it; it can be tried again."),
    ),
    transitions=(
        Transition("start", ("pending", "interrupted", "failed"), "running"),
        Transition("finish", ("running",), "succeeded"),
        Transition("fail", ("running", "interrupting"), "failed"),
        Transition("interrupt", ("running",), "interrupting"),
        Transition("interrupt", ("pending", "interrupted", "failed"), ignored="nothing runs"),
        Transition("interrupt", ("interrupting",), ignored="already stopping"),
        Transition("stopped", ("interrupting",), "interrupted"),
        Transition("lose", ("running", "interrupting"), "interrupted"),
        Transition("lose", ("pending", "interrupted", "failed"), ignored="nothing ran"),
    ),
    control=("interrupt",),
)


# The machine of a revert: files are given back only when nothing that could change them is left
# `asked` lasts until the turn has ended and everything it started is dead. A crash while files are being
# given back is none of this machine's business: the same order is carried out again, and finishes or
# finds that it was finished.


REVERT = Machine(
    name="revert",
    doc="One wish to have files as they were.",
    initial="asked",
    states=(
        State("asked", "It waits until everything that the turn started is dead."),
        State("started", "It is looked what is to be given back; nothing else begins meanwhile."),
        State("restoring", "Files are being given back; nothing else begins meanwhile."),
        State("restored", "Done, as far as nobody else had changed them since.", is_final=True),
        State("refused", "Nothing was changed; the reason was told.", is_final=True),
    ),
    transitions=(
        Transition("start", ("asked",), "started"),
        Transition("begin", ("started",), "restoring"),
        Transition("begin", ("restoring",)),
        Transition("restore", ("started", "restoring"), "restored"),
        Transition("refuse", ("asked", "started", "restoring"), "refused"),
    ),
    control=("refuse",),
)


# The machine of a restore record: what is kept so that a session of another agent can be resumed
# Agents call their hooks by different names, and some say that a session ends after every turn. So one
# event has two rows: where the agent's definition says that a session's end is a turn boundary, it
# moves the record to where the prompt stopped; where not, it tears down, by the same row and the same
# effect as a finalize. A dead process alone is no event at all. A session that comes back after its end
# begins a new record; the old one is final and stays so.


_KEPT = ("working", "waiting", "stale")
_REPORTED = (
    "prompt_submit",
    "agent_response",
    "notification",
    "session_end",
    "session_finalize",
    "forget",
)

RESTORE = Machine(
    name="restore",
    doc="What is known of a session of an external agent, kept until it is finalized.",
    initial="unknown",
    states=(
        State("unknown", "Nobody has heard of the session: its events change nothing."),
        State("working", "A prompt was submitted and has not been answered."),
        State("waiting", "It waits for a prompt; where the last one stopped is recorded."),
        State("stale", "Nothing was heard of it for `restore.retention_hours`."),
        State("finalizing", "It is over; whoever has to hear of it has not heard yet."),
        State("finalized", "It is over, and everybody has heard.", is_final=True),
        State("continued", "It was resumed and goes on under another id.", is_final=True),
    ),
    transitions=(
        Transition("session_start", ("unknown",), "waiting", effects=("open", "bind")),
        Transition("session_start", _KEPT, "waiting", effects=("bind",)),
        Transition("prompt_submit", _KEPT, "working", effects=("bind",)),
        Transition("agent_response", _KEPT, "waiting", effects=("bind", "note_boundary")),
        Transition("notification", ("working", "waiting"), effects=("bind",)),
        Transition("notification", ("stale",), "waiting", effects=("bind",)),
        Transition(
            "session_end", _KEPT, "waiting", ("is_turn_boundary",), ("bind", "note_boundary")
        ),
        Transition("session_end", _KEPT, "finalizing", effects=("tear_down",)),
        Transition("session_finalize", _KEPT, "finalizing", effects=("tear_down",)),
        Transition("forget", _KEPT, "finalizing", effects=("tear_down",)),
        Transition("outlive", ("working", "waiting"), "stale"),
        Transition("outlive", ("stale",), ignored="stale already"),
        Transition("expire", ("stale",), "finalizing", effects=("tear_down",)),
        Transition("resume", _KEPT, "waiting", effects=("bind",)),
        Transition("continue", _KEPT, "continued"),
        Transition("settle", ("finalizing",), "finalized"),
        Transition(
            "prompt_submit",
            ("unknown",),
            "working",
            ("was_known", "prompt_reopens"),
            ("open", "bind"),
        ),
        *(
            Transition(event, ("unknown",), ignored="nobody knows this session")
            for event in _REPORTED
        ),
        *(Transition(event, ("finalizing",), ignored="it is over already") for event in _REPORTED),
    ),
    control=("session_end", "session_finalize", "forget"),
)
