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
        State(name="running", doc="It takes messages."),
        State(name="stopping", doc="It was asked to end, alone or because a sibling failed."),
        State(name="suspended", doc="It has failed; its mailbox is kept for the restart."),
        State(name="ended", doc="It has ended.", is_final=True),
        State(
            name="given_up",
            doc="It failed too often; its supervisor failed with it.",
            is_final=True,
        ),
    ),
    transitions=(
        Transition(event="stop", source=("running",), dest="stopping"),
        Transition(event="stop", source=("stopping", "suspended"), ignored="already on its way"),
        Transition(event="down", source=("running",), dest="suspended", guards=("must_restart",)),
        Transition(event="down", source=("running",), dest="ended"),
        Transition(event="down", source=("stopping",), dest="suspended", guards=("must_restart",)),
        Transition(event="down", source=("stopping",), dest="ended"),
        Transition(event="restart", source=("suspended",), dest="running"),
        Transition(event="give_up", source=("running", "stopping", "suspended"), dest="given_up"),
    ),
    control=("stop",),
)


# The machine of a subagent: a session that works for another, as its parent knows it --------------
# A side talk is one, too. What the child session itself does is a matter of its own journal; here is
# what its parent may rely on, across crashes.


SUBAGENT = Machine(
    name="subagent",
    doc="A session that works for another one, from the request to its result.",
    initial="waiting",
    states=(
        State(name="waiting", doc="It begins as soon as there is room."),
        State(name="working", doc="It was given its task."),
        State(name="stopping", doc="It is being stopped, with all its processes."),
        State(name="interrupted", doc="It was stopped, or its program died; it can be resumed."),
        State(name="completed", doc="It gave its result.", is_final=True),
        State(name="failed", doc="It failed; its partial result is kept.", is_final=True),
        State(
            name="cancelled",
            doc="It was stopped permanently; its partial result is kept.",
            is_final=True,
        ),
        State(name="disconnected", doc="Its connection or program was lost.", is_final=True),
    ),
    transitions=(
        Transition(event="admit", source=("waiting",), dest="working"),
        Transition(event="cancel", source=("waiting", "interrupted"), dest="cancelled"),
        Transition(event="cancel", source=("working",), dest="stopping"),
        Transition(event="cancel", source=("stopping",)),
        Transition(event="detach", source=("waiting", "working")),
        Transition(event="detach", source=("stopping", "interrupted"), ignored="it does not work"),
        Transition(
            event="interrupted", source=("waiting", "working", "stopping"), dest="interrupted"
        ),
        Transition(event="complete", source=("working", "stopping"), dest="completed"),
        Transition(
            event="fail", source=("waiting", "working", "stopping", "interrupted"), dest="failed"
        ),
        Transition(
            event="stopped",
            source=("waiting", "working", "stopping", "interrupted"),
            dest="cancelled",
        ),
        Transition(
            event="disconnect", source=("waiting", "working", "stopping"), dest="disconnected"
        ),
        Transition(event="resume", source=("interrupted",), dest="working"),
    ),
    control=("cancel", "detach"),
)

AT_WORK = ("waiting", "working", "stopping")
"""The states in which a child counts as one that works."""


def meant(names: Iterable[str], name: str) -> tuple[str, ...]:
    """Return which of those at work a name means.

    A name that an interrupted child still bears is given on with a number: `kid-2` is meant by
    `kid`, too, while no `kid` works.
    """
    there = tuple(names)
    exact = tuple(known for known in there if known == name)
    return exact or tuple(
        known
        for known in there
        if known.startswith(f"{name}-") and known[len(name) + 1 :].isdecimal()
    )


# The machine of an interrupt's receipt: from the order to stop until everything is dead -----------


INTERRUPT = Machine(
    name="interrupt",
    doc="The outcome of one stop.",
    initial="planned",
    states=(
        State(name="planned", doc="It was accepted; the running tools end first."),
        State(name="stopping", doc="It took effect; the processes of the turn are being stopped."),
        State(name="stopped", doc="All processes of the turn have exited.", is_final=True),
        State(
            name="overtaken",
            doc="Another stop came first, or the turn had ended.",
            is_final=True,
        ),
        State(name="called_off", doc="It was cancelled before it took effect.", is_final=True),
    ),
    transitions=(
        Transition(event="take_effect", source=("planned",), dest="stopping"),
        Transition(event="call_off", source=("planned",), dest="called_off"),
        Transition(event="call_off", source=("stopping",), ignored="it took effect"),
        Transition(event="overtake", source=("planned", "stopping"), dest="overtaken"),
        Transition(event="finish", source=("stopping",), dest="stopped"),
        Transition(event="finish", source=("planned",), dest="overtaken"),
    ),
    control=("call_off",),
)


# The judge's machine: one boundary of a goal, from the end of a turn to a verdict -----------------


JUDGE = Machine(
    name="judge",
    doc="One judgement of a goal, after a turn.",
    initial="gating",
    states=(
        State(name="gating", doc="The gates run."),
        State(name="asking", doc="The judge's model was called."),
        State(
            name="comparing",
            doc="The agent is to go on: the changes of files are being counted.",
        ),
        State(name="judged", doc="There is a verdict.", is_final=True),
        State(name="unusable", doc="There is no usable verdict.", is_final=True),
        State(name="stopped", doc="It was stopped.", is_final=True),
    ),
    transitions=(
        Transition(event="gate_passed", source=("gating",), effects=("next",)),
        Transition(
            event="gate_failed",
            source=("gating",),
            dest="comparing",
            guards=("must_count",),
            effects=("compare",),
        ),
        Transition(event="gate_failed", source=("gating",), dest="judged", effects=("tell",)),
        Transition(
            event="gates_done",
            source=("gating",),
            dest="judged",
            guards=("gates_decide",),
            effects=("tell",),
        ),
        Transition(event="gates_done", source=("gating",), dest="asking", effects=("ask",)),
        Transition(
            event="verdict",
            source=("asking",),
            dest="comparing",
            guards=("must_count",),
            effects=("compare",),
        ),
        Transition(event="verdict", source=("asking",), dest="judged", effects=("tell",)),
        Transition(event="no_verdict", source=("asking",), dest="unusable", effects=("tell",)),
        Transition(event="compared", source=("comparing",), dest="judged", effects=("tell",)),
        Transition(event="stop", source=("gating", "asking", "comparing"), dest="stopped"),
    ),
    control=("stop",),
)


# The machine of a queue item: one message that a person sent, from arrival to its end -------------
# A steer is an item, too: it waits, pending, for a boundary of the turn that it names, or of the
# children that it was handed on to. An offered item never runs automatically.
#
# The guards ask for facts of the item (`facts` in `journal/queue_record.py`):
# `spoken`               somebody said it, or a child answered: no goal, summary or new try of a run
# `of_goal`              it begins the next turn of a goal
# `edited`               a person edits it in some client
# `waits_for_boundary`   it is a steer, for a turn here or for children
# `handed_on`            children have it
# `with_child`           a child at work has it, or has taken it in
# `answered`             the answer of its child is there

_BUSY = "a person edits it, or it waits for a boundary"
_BUSY_OR_UNSPOKEN = f"{_BUSY}, or it is nobody's words"
_ANSWERED = "the answer is there"
_UNANSWERED = "the answer is not there yet"


ITEM = Machine(
    name="item",
    doc="One message in a session's queue.",
    initial="pending",
    states=(
        State(name="pending", doc="It waits: for its turn, or as a steer for a boundary."),
        State(name="offered", doc="A side talk's or a child's answer: to steer, keep or drop."),
        State(name="running", doc="Its turn runs."),
        State(
            name="interrupted",
            doc="Its turn, here or in the session it came from, was interrupted.",
        ),
        State(
            name="superseded",
            doc="Another message replaced its turn; a resume runs it again, later only its number does.",
        ),
        State(
            name="unanswered",
            doc="Its model gave no answer; a resume goes on with it, until another turn begins.",
        ),
        State(name="steered", doc="It was delivered to a running turn.", is_final=True),
        State(name="done", doc="Its turn is complete.", is_final=True),
        State(name="failed", doc="Its turn failed.", is_final=True),
        State(name="withdrawn", doc="A person removed it.", is_final=True),
    ),
    transitions=(
        Transition(
            event="start",
            source=("pending",),
            dest="running",
            guards=("!edited", "!waits_for_boundary"),
        ),
        Transition(event="start", source=("pending",), ignored=_BUSY),
        Transition(event="start", source=("interrupted",), dest="running"),
        Transition(
            event="steer",
            source=("pending",),
            dest="steered",
            guards=("waits_for_boundary", "!edited"),
        ),
        Transition(event="steer", source=("pending",), ignored="it is no steer, or is edited"),
        Transition(event="requeue", source=("pending",)),
        Transition(
            event="address",
            source=("pending",),
            guards=("spoken", "!edited", "!waits_for_boundary"),
        ),
        Transition(event="address", source=("pending",), ignored=_BUSY_OR_UNSPOKEN),
        Transition(event="address", source=("offered",), dest="pending", guards=("answered",)),
        Transition(event="address", source=("offered",), ignored=_UNANSWERED),
        Transition(event="offer", source=("pending",), dest="offered"),
        Transition(event="want", source=("offered",), guards=("!answered",)),
        Transition(event="want", source=("offered",), ignored=_ANSWERED),
        Transition(event="answer", source=("offered",), guards=("!answered",)),
        Transition(event="answer", source=("offered",), ignored=_ANSWERED),
        Transition(event="keep", source=("offered",), dest="pending", guards=("answered",)),
        Transition(event="keep", source=("offered",), ignored=_UNANSWERED),
        Transition(
            event="edit",
            source=("pending", "interrupted"),
            guards=("spoken", "!edited", "!handed_on"),
        ),
        Transition(event="edit", source=("pending", "interrupted"), ignored=_BUSY_OR_UNSPOKEN),
        Transition(
            event="begin_edit", source=("pending",), guards=("spoken", "!edited", "!handed_on")
        ),
        Transition(event="begin_edit", source=("pending",), ignored=_BUSY_OR_UNSPOKEN),
        Transition(event="end_edit", source=("pending", "offered"), guards=("edited",)),
        Transition(event="end_edit", source=("pending", "offered"), ignored="nobody edits it"),
        Transition(event="move", source=("pending",), guards=("!of_goal", "!waits_for_boundary")),
        Transition(event="move", source=("pending",), ignored="it has no place among what waits"),
        Transition(event="complete", source=("running",), dest="done"),
        Transition(event="fail", source=("running", "unanswered"), dest="failed"),
        Transition(event="go_unanswered", source=("running",), dest="unanswered"),
        Transition(event="interrupt", source=("running",), dest="interrupted"),
        Transition(event="supersede", source=("running",), dest="superseded"),
        Transition(event="resume", source=("superseded", "unanswered"), dest="interrupted"),
        Transition(event="resume", source=("interrupted",)),
        Transition(event="resume", source=("pending",), guards=("!edited", "!waits_for_boundary")),
        Transition(event="resume", source=("pending",), ignored=_BUSY),
        Transition(event="bring", source=("pending",), dest="interrupted"),
        Transition(
            event="interrupt",
            source=("pending", "interrupted", "superseded", "unanswered", "offered"),
            ignored="it does not run",
        ),
        Transition(
            event="withdraw",
            source=("interrupted", "superseded", "unanswered", "offered"),
            dest="withdrawn",
        ),
        Transition(
            event="withdraw", source=("pending",), dest="withdrawn", guards=("!with_child",)
        ),
        Transition(event="withdraw", source=("pending",), ignored="a child at work has it"),
        Transition(event="withdraw", source=("running",), ignored="it runs; stop it first"),
    ),
    control=("interrupt", "withdraw"),
)


# The queue's machine: whether waiting messages may run automatically ------------------------------


QUEUE = Machine(
    name="queue",
    doc="A session's waiting messages, in order.",
    initial="open",
    states=(
        State(name="open", doc="The next waiting message runs as soon as nothing else does."),
        State(
            name="held",
            doc="What waits stays, in order, until a person says resume; what is said to a turn "
            "that began since is not held.",
        ),
        State(name="closed", doc="The session is final.", is_final=True),
    ),
    transitions=(
        Transition(event="accept", source=("open", "held")),
        Transition(event="hold", source=("open",), dest="held"),
        Transition(event="hold", source=("held",), ignored="already held"),
        Transition(event="release", source=("held",), dest="open"),
        Transition(event="release", source=("open",), ignored="not held"),
        Transition(event="close", source=("open", "held"), dest="closed"),
    ),
    control=("hold", "release", "close"),
)


# The machine of a tool call: a durable intent before anything starts, and one result --------------
# A crash between the two leaves `unknown`: shown, reported to the model, and never run again unasked.


CALL = Machine(
    name="call",
    doc="One tool call of one model answer.",
    initial="requested",
    states=(
        State(name="requested", doc="The model asked for it; there is no decision yet."),
        State(name="asking", doc="A person is asked whether it may run."),
        State(name="running", doc="The intent is durable; it runs or is about to."),
        State(name="stopping", doc="Its processes are being stopped."),
        State(name="done", doc="It returned.", is_final=True),
        State(name="failed", doc="It ran and failed, or could not run.", is_final=True),
        State(name="timed_out", doc="It was ended at its time limit.", is_final=True),
        State(name="killed", doc="It was ended by a cancel.", is_final=True),
        State(name="denied", doc="It was not allowed.", is_final=True),
        State(name="skipped", doc="The turn ended before it could start.", is_final=True),
        State(
            name="unknown",
            doc="The program died while it ran: its outcome is unknown.",
            is_final=True,
        ),
    ),
    transitions=(
        Transition(event="ask", source=("requested",), dest="asking"),
        Transition(event="intend", source=("requested", "asking"), dest="running"),
        Transition(event="deny", source=("requested", "asking"), dest="denied"),
        Transition(event="reject", source=("requested",), dest="failed"),
        Transition(event="succeed", source=("running", "stopping"), dest="done"),
        Transition(event="fail", source=("running", "stopping"), dest="failed"),
        Transition(event="time_out", source=("running", "stopping"), dest="timed_out"),
        Transition(event="kill", source=("running", "stopping"), dest="killed"),
        Transition(event="stop", source=("running",), dest="stopping"),
        Transition(event="stop", source=("requested", "asking"), dest="skipped"),
        Transition(event="stop", source=("stopping",), ignored="already stopping"),
        Transition(event="lose", source=("running", "stopping"), dest="unknown"),
        Transition(event="lose", source=("requested", "asking"), dest="skipped"),
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


LIVE = ("boundary", "calling", "waiting", "compacting", "acting", "paused")

TURN = Machine(
    name="turn",
    doc="One run of the agent loop, from a message to the agent's last answer.",
    initial="boundary",
    states=(
        State(name="boundary", doc="Between calls: steers enter here and nowhere else."),
        State(name="calling", doc="The model was asked."),
        State(name="waiting", doc="The model's provider takes no call before a time that it told."),
        State(name="compacting", doc="Older turns are being summarised; no other call is open."),
        State(name="acting", doc="Tool calls of one answer run, or wait for permission."),
        State(name="paused", doc="Its model calls are used up; a person is asked to go on."),
        State(name="completed", doc="The agent gave its last answer.", is_final=True),
        State(name="interrupted", doc="A cancel ended it; it can be resumed.", is_final=True),
        State(name="failed", doc="The model failed, or a limit was reached.", is_final=True),
    ),
    transitions=(
        Transition(
            event="proceed",
            source=("boundary",),
            dest="calling",
        ),
        Transition(event="pause", source=("boundary",), dest="paused"),
        Transition(event="go_on", source=("paused",), dest="boundary"),
        Transition(event="finish", source=("boundary",), dest="completed"),
        Transition(
            event="answer",
            source=("calling",),
            dest="acting",
            guards=("has_calls",),
        ),
        Transition(event="answer", source=("calling",), dest="boundary"),
        Transition(event="cut", source=("calling",), dest="boundary"),
        Transition(event="model_failed", source=("calling",), dest="failed"),
        Transition(event="wait", source=("calling",), dest="waiting"),
        Transition(event="ask_again", source=("waiting",), dest="boundary"),
        Transition(event="compact", source=("boundary",), dest="compacting"),
        Transition(event="overflow", source=("calling",), dest="compacting"),
        Transition(event="compacted", source=("compacting",), dest="boundary"),
        Transition(event="calls_done", source=("acting",), dest="boundary"),
        Transition(event="interrupt", source=LIVE, dest="interrupted", guards=()),
        Transition(event="fail", source=LIVE, dest="failed"),
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
        State(name="idle", doc="Nothing runs. Whether the queue is held is the queue's state."),
        State(name="busy", doc="A turn runs."),
        State(name="interrupting", doc="The turn is being stopped, with its processes."),
        State(
            name="leaving",
            doc="Running work is being stopped, then the session is suspended.",
        ),
        State(name="suspended", doc="No program has it open; everything is on disk."),
        State(
            name="finalizing", doc="Running work is being stopped, then the session is finalized."
        ),
        State(name="finalized", doc="It has ended permanently.", is_final=True),
    ),
    transitions=(
        Transition(event="turn_started", source=("idle",), dest="busy"),
        Transition(event="turn_ended", source=("busy", "interrupting"), dest="idle"),
        Transition(event="turn_ended", source=("leaving", "finalizing")),
        Transition(event="interrupt", source=("busy",), dest="interrupting"),
        Transition(
            event="interrupt",
            source=("interrupting", "leaving", "finalizing"),
            ignored="already stopping",
        ),
        Transition(event="interrupt", source=("idle", "suspended"), ignored="nothing runs"),
        Transition(event="stopped", source=("interrupting",), dest="idle"),
        Transition(event="stopped", source=("leaving", "finalizing")),
        Transition(event="suspend", source=("idle", "busy", "interrupting"), dest="leaving"),
        Transition(
            event="suspend",
            source=("suspended", "leaving", "finalizing"),
            ignored="already leaving",
        ),
        Transition(event="settle", source=("leaving",), dest="suspended"),
        Transition(event="settle", source=("finalizing",), dest="finalized"),
        Transition(event="resume", source=("suspended",), dest="idle"),
        Transition(event="resume", source=("idle",), ignored="already here"),
        Transition(
            event="finalize",
            source=("idle", "suspended", "busy", "interrupting", "leaving"),
            dest="finalizing",
        ),
        Transition(event="finalize", source=("finalizing",), ignored="already finalizing"),
        Transition(event="recover", source=("busy", "interrupting", "leaving"), dest="idle"),
        Transition(event="recover", source=("idle", "suspended"), dest="idle"),
        Transition(event="recover", source=("finalizing",)),
    ),
    control=("interrupt", "suspend", "finalize"),
)


# The goal's machine: work that goes on over many turns, until a judge says that it is done --------
# A goal ends in every case: it is achieved, it is found impossible, it is cleared, or it pauses,
# automatically or because a person asked for it. The reason of each pause is shown. Only a person
# resumes a paused goal, and that grants its budget once more.


GOAL = Machine(
    name="goal",
    doc="A condition to reach turn by turn, judged after each.",
    initial="lined_up",
    states=(
        State(name="lined_up", doc="It begins when the goals before it are achieved."),
        State(name="active", doc="Its turns run, or a judge checks the last one."),
        State(name="waiting", doc="It waits for the condition that the judge named."),
        State(name="paused", doc="It waits until a person resumes it; the reason is known."),
        State(name="achieved", doc="The judge decided that it is met.", is_final=True),
        State(name="impossible", doc="The judge decided that it cannot be met.", is_final=True),
        State(name="cleared", doc="A person cleared it, or its session ended.", is_final=True),
    ),
    transitions=(
        Transition(event="begin", source=("lined_up",), dest="active"),
        Transition(event="continue", source=("active",)),
        Transition(event="wait", source=("active",), dest="waiting"),
        Transition(event="wake", source=("waiting",), dest="active"),
        Transition(event="achieve", source=("active",), dest="achieved"),
        Transition(event="give_up", source=("active",), dest="impossible"),
        Transition(event="pause", source=("active", "waiting"), dest="paused"),
        Transition(event="pause", source=("paused",), ignored="paused already"),
        Transition(event="pause", source=("lined_up",), ignored="not begun yet"),
        Transition(event="resume", source=("paused", "waiting"), dest="active"),
        Transition(event="resume", source=("active",), ignored="it is active"),
        Transition(
            event="clear", source=("lined_up", "active", "waiting", "paused"), dest="cleared"
        ),
    ),
    control=("pause", "clear"),
)

PURSUED: Final = ("active", "waiting")
"""The states in which something is done for it, or will be, without a person's order."""

REASONS: Final = {
    "user": "a person paused it",
    "interrupt": "work was stopped",
    "budget": "its budget is spent",
    "no_progress": "the agent repeated its answer, and no file has changed",
    "judge_unusable": "the judge gives no usable verdict",
    "gate_unusable": "a gate could not be started",
    "failing": "turn after turn failed",
}
"""Why a goal is paused."""


# The machine of a workflow's run: a session whose turn is the steps of a file ---------------------
# An interrupted run goes on at the items where it was, a failed one with what failed and what waited for
# that; one that succeeded is over. A run whose actor fails while it is being stopped is interrupted, as
# its queue item is: were it failed, another try would make a second item of it.


RUN = Machine(
    name="run",
    doc="One run of a workflow, across interrupts and crashes.",
    initial="pending",
    states=(
        State(name="pending", doc="It was opened; no step has begun."),
        State(name="running", doc="Steps run, or wait for others."),
        State(name="interrupting", doc="No step begins; running work is being stopped."),
        State(name="interrupted", doc="Nothing runs; it can be resumed."),
        State(name="succeeded", doc="Every step is done or was not needed.", is_final=True),
        State(name="failed", doc="A step failed and was not handled; it can be retried."),
    ),
    transitions=(
        Transition(event="start", source=("pending", "interrupted", "failed"), dest="running"),
        Transition(event="finish", source=("running",), dest="succeeded"),
        Transition(event="fail", source=("running",), dest="failed"),
        Transition(event="fail", source=("interrupting",), dest="interrupted"),
        Transition(event="interrupt", source=("running",), dest="interrupting"),
        Transition(
            event="interrupt", source=("pending", "interrupted", "failed"), ignored="nothing runs"
        ),
        Transition(event="interrupt", source=("interrupting",), ignored="already stopping"),
        Transition(event="stopped", source=("interrupting",), dest="interrupted"),
        Transition(event="lose", source=("running", "interrupting"), dest="interrupted"),
        Transition(
            event="lose", source=("pending", "interrupted", "failed"), ignored="nothing ran"
        ),
    ),
    control=("interrupt",),
)


# The machine of a revert: files are restored when nothing is left that could change them ----------
# `asked` lasts until the turn has ended and everything it started is dead. A crash while files are being
# restored is none of this machine's business: the same order is carried out again, and finishes or
# finds that it was finished.


REVERT = Machine(
    name="revert",
    doc="One request to restore files.",
    initial="asked",
    states=(
        State(name="asked", doc="It waits until all processes of the turn have exited."),
        State(
            name="started",
            doc="The restore is being planned; nothing else begins.",
        ),
        State(name="restoring", doc="Files are being restored; nothing else begins."),
        State(
            name="restored",
            doc="Files are restored, except those changed since.",
            is_final=True,
        ),
        State(name="refused", doc="Nothing was changed; the reason was reported.", is_final=True),
    ),
    transitions=(
        Transition(event="start", source=("asked",), dest="started"),
        Transition(event="begin", source=("started",), dest="restoring"),
        Transition(event="begin", source=("restoring",)),
        Transition(event="restore", source=("started", "restoring"), dest="restored"),
        Transition(event="refuse", source=("asked", "started", "restoring"), dest="refused"),
    ),
    control=("refuse",),
)


# The machine of a restore record: a session of an external agent that can be resumed --------------
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
    doc="The record of an external agent's session, kept until it is finalized.",
    initial="unknown",
    states=(
        State(name="unknown", doc="The session is unknown: its events change nothing."),
        State(name="working", doc="A prompt was submitted and has not been answered."),
        State(name="waiting", doc="It waits for a prompt; where the last one stopped is recorded."),
        State(name="stale", doc="It has had no event for `restore.retention_hours`."),
        State(name="finalizing", doc="It has ended; the hooks have not run yet."),
        State(name="finalized", doc="It has ended, and the hooks have run.", is_final=True),
        State(name="continued", doc="It was resumed under another id.", is_final=True),
    ),
    transitions=(
        Transition(
            event="session_start", source=("unknown",), dest="waiting", effects=("open", "bind")
        ),
        Transition(event="session_start", source=_KEPT, dest="waiting", effects=("bind",)),
        Transition(event="prompt_submit", source=_KEPT, dest="working", effects=("bind",)),
        Transition(
            event="agent_response", source=_KEPT, dest="waiting", effects=("bind", "note_boundary")
        ),
        Transition(event="notification", source=("working", "waiting"), effects=("bind",)),
        Transition(event="notification", source=("stale",), dest="waiting", effects=("bind",)),
        Transition(
            event="session_end",
            source=_KEPT,
            dest="waiting",
            guards=("is_turn_boundary",),
            effects=("bind", "note_boundary"),
        ),
        Transition(event="session_end", source=_KEPT, dest="finalizing", effects=("tear_down",)),
        Transition(
            event="session_finalize", source=_KEPT, dest="finalizing", effects=("tear_down",)
        ),
        Transition(event="forget", source=_KEPT, dest="finalizing", effects=("tear_down",)),
        Transition(event="outlive", source=("working", "waiting"), dest="stale"),
        Transition(event="outlive", source=("stale",), ignored="stale already"),
        Transition(event="expire", source=("stale",), dest="finalizing", effects=("tear_down",)),
        Transition(event="resume", source=_KEPT, dest="waiting", effects=("bind",)),
        Transition(event="continue", source=_KEPT, dest="continued"),
        Transition(event="settle", source=("finalizing",), dest="finalized"),
        Transition(
            event="prompt_submit",
            source=("unknown",),
            dest="working",
            guards=("was_known", "prompt_reopens"),
            effects=("open", "bind"),
        ),
        *(
            Transition(event=event, source=("unknown",), ignored="the session is unknown")
            for event in _REPORTED
        ),
        *(
            Transition(event=event, source=("finalizing",), ignored="it is over already")
            for event in _REPORTED
        ),
    ),
    control=("session_end", "session_finalize", "forget"),
)
