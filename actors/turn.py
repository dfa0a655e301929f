"""The turn actor: the agent loop. It is the authority on its steps; `decisions/turning.py` has them.

Model call, tool calls, boundary, model call, … Nothing here waits: the model streams and tools run in
the ports, and what they return comes back as messages. Each message becomes entries. The turn's machine
makes its steps as they are folded; what is due then is in its state, and `_attend` does that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, assert_never

from ..journal.entries import Entry, QuestionAnswered
from ..journal.record import SessionRecord
from ..journal.turn_record import CALL_ENDS, GOES_ON, TurnRecord
from ..machines import protocol as m
from ..machines.conversation import Usage, cut_short
from ..machines.delivery import ENDS, Relation, deliver
from ..machines.policy import ANSWER
from .decisions import calls, compacting, progress, stopping, turning
from .decisions.decision import Decision, answer, refused_with
from .decisions.queries import running_calls, waiting_steers
from .decisions.turning import Ending
from .ledger import Ledger, Member

if TYPE_CHECKING:
    from .environment import Environment
    from .kernel.system import ActorSystem


NO_STEER = "takes no steer while it works: it gets the message after its answer, in the same turn."
STEPS = "`/queue resume` goes on, for as many again; agents.NAME.max_steps sets the limit"
NO_ANSWER = "[No answer: the model call failed.]"


class CallBudget:
    """The budget of a turn's model calls, of the session's limits: reserved before, counted after.

    `reserved`: the tokens that the newest call sends.
    """

    def __init__(self, environment: Environment, turn: str) -> None:
        self._environment = environment
        self._name = ":".join((*environment.path, turn))
        self.reserved = 0

    def reserve(self, record: SessionRecord, now: float) -> str:
        """Set apart what the next call may use; return the limit that forbids it, if one does."""
        environment = self._environment
        account, price = environment.account, environment.price
        tokens = compacting.filled_tokens(record, environment.compaction)
        wanted = Usage(input=tokens, output=ANSWER)
        wanted = Usage(input=tokens, output=ANSWER, cost=price.cost(wanted) if price else 0.0)
        refusal = account.refusal(wanted, now)
        if not refusal:
            account.reserve(self._name, wanted)
            self.reserved = tokens
        return refusal

    def settle(self, usage: Usage | None) -> None:
        """Count what a call took; of one that was cut off, what was sent."""
        account = self._environment.account
        if self._name in account.reserved:
            account.settle(self._name, usage or Usage(input=self.reserved))


class Turn(Member):
    """One turn, from its first boundary to its end. All that must outlive it is in the record.

    `partial` is what has come of the answer that streams, `budget` what the calls may use;
    `asked` is the step before which the queue was asked for steers, and has not answered.
    """

    role = "turn"

    def __init__(self, system: ActorSystem, ledger: Ledger, turn: str) -> None:
        super().__init__(system, ledger)
        self.id = turn
        self.partial: list[str] = []
        self.budget = CallBudget(ledger.environment, turn)
        self.asked = 0

    @property
    def _turn(self) -> TurnRecord:
        return self.record.turns[self.id]

    def on_start(self) -> None:
        """Begin at a boundary."""
        self.enlist()
        self._attend()

    def on_receive(self, message: Any) -> Any:
        """Take in a result, an answer or news; then do what is due."""
        reply = self._take(message)
        # what is due is in the record: of many results that wait, the last one is enough to look at it
        if not isinstance(message, m.ToolFinished) or self.mailbox.empty():
            self._attend()
        return reply

    def _take(self, message: Any) -> Any:
        match message:
            case m.Wake():
                self.awake()
                self.asked = 0
            case (
                m.ModelText()
                | m.ModelThought()
                | m.ToolPrinted()
                | m.ModelNoticed()
                | m.AgentSaid()
            ):
                self._stream(message)
            case m.ModelAnswered():
                self._answered(message)
            case m.ModelFailed():
                self._model_failed(message)
            case m.Summarised():
                self._summarised(message)
            case m.TimerFired():
                self.decide(turning.again(self._turn, self.system.now()))
            case m.ToolFinished():
                self._tool_finished(message)
            case m.ToolProgressed():
                if message.call in _begun(self._turn) and self._turn.state == "acting":
                    self.decide(turning.progressed(self.id, message))
            case m.AgentBound() | m.AgentCalled() | m.AgentCallEnded():
                self._agent_told(message)
            case m.Answer():
                return self._question_answered(message)
            case m.SteerWaits():
                if m.AGENT_TOOL in running_calls(self.record):
                    self.ledger.publish(m.Notice(text=f"{self.environment.agent} {NO_STEER}"))
            case _:
                return super().on_receive(message)
        return None

    # Due work -------------------------------------------------------------------------------------

    def _attend(self) -> None:
        """Do what the record says is due, one thing after the other: end, be stopped, go on."""
        seen: SessionRecord | None = None
        while (
            self.record is not seen and not self.actor_stopped.is_set() and not self.ledger.broken
        ):
            seen = self.record
            self._attend_to(seen, self._turn)

    def _attend_to(self, record: SessionRecord, turn: TurnRecord) -> None:
        if turn.is_over or record.turn != self.id:
            return  # it ends with the next message
        if turn.state == "interrupted":
            self.decide(turning.detached(record))
            if self.accepts(turning.buried(self.record)) and self._turn.is_over:
                self.stop()
        elif _is_stopped(record):
            self._cut_off()
        elif turn.state == "boundary" and not turn.is_spent:
            self._take_step()
        elif turn.state == "acting":
            self.decide(turning.detached(record))
            self._start_calls()
        elif turn.state == "calling":
            self._cut_for_steer()

    # The loop -------------------------------------------------------------------------------------

    def _take_step(self) -> None:
        """Let in the steers that wait; then ask the model again, or end."""
        record, turn = self.record, self._turn
        if waiting_steers(record):
            if self.asked <= turn.step:
                self.asked = turn.step + 1
                self.ledger.tell("queue", m.TakeSteers(turn=self.id, step=self.asked))
            return
        if not turn.is_closing and self._stalls():
            return
        if turn.is_closing:
            self.decide(turning.doubted(record))
            record, turn = self.record, self._turn
        is_spent = turning.is_spent(turn, self.environment)
        if turn.is_closing or (turn.was_cut and is_spent):
            if not turning.awaited(record, self.id):
                self._finish(Ending())
            return
        if is_spent:
            environment = self.environment
            if environment.policy.can_ask:
                self.decide(turning.paused(turn, environment))
            else:
                self._end_by(*turning.at_limit(turn, turning.spent(environment), STEPS))
        elif not self._makes_room() and self._may_call():
            self.partial.clear()
            most = turning.most_tokens(self.environment.account.room())
            self.decide(turning.call_model(self.record, self.budget.reserved, most))

    def _stalls(self) -> bool:
        """Do what is due about a turn that repeats itself; whether the model is not asked now."""
        turn, environment = self._turn, self.environment
        match progress.due(self.record, environment):
            case "":
                return False
            case "tell":
                self.decide(progress.told(turn, environment))
                return False
            case "judge":
                ending, noted = progress.judged(turn, environment)
                if self.accepts(Decision(entries=(noted,))):
                    self._finish(ending)
            case "ask":
                self.decide(progress.asked(turn, environment))
            case "end":
                self._end_by(*progress.ended(turn, environment))
        return True

    def _start_calls(self) -> None:
        """Start the next call, or as many as may run side by side."""
        if stopping.planned_stop(self.record) is not None:
            return
        while begun := calls.next_calls(self._turn, self.environment):
            for call in begun:
                self.decide(calls.begin(self.record, call, self.environment))
            if self._turn.state != "acting":
                break

    def _finish(self, ending: Ending) -> None:
        """End the turn without a stop, as `ending` says."""
        if self.accepts(turning.ended(self.record, ending, self.environment)):
            self.stop()

    def _cut_off(self) -> None:
        """End by a stop: what runs is stopped, and awaited."""
        self.budget.settle(None)
        self.decide(turning.cut_off(self.record, "".join(self.partial), self.environment))

    # Answers of the model -------------------------------------------------------------------------

    def _stream(
        self, message: m.ModelText | m.ModelThought | m.ToolPrinted | m.AgentSaid | m.ModelNoticed
    ) -> None:
        """Pass on what streams; what comes from a call that has ended, or is not durable, is dropped."""
        turn = self._turn
        if self.ledger.broken:
            return
        match message:
            case m.ModelText() | m.ModelThought():
                if turn.state != "calling" or message.step != turn.step:
                    return
                if isinstance(message, m.ModelThought):
                    self.ledger.publish(m.ThoughtStreamed(turn=self.id, delta=message.delta))
                    return
                self.partial.append(message.delta)
                self.ledger.publish(m.TextStreamed(turn=self.id, delta=message.delta))
                if message.is_due:
                    self.decide(turning.answer_grew(turn, "".join(self.partial)))
            case m.ToolPrinted():
                if message.call in _begun(self._turn):
                    self.ledger.publish(
                        m.OutputShown(turn=self.id, call=message.call, text=message.text)
                    )
            case m.AgentSaid():
                if message.call in _begun(self._turn):
                    self.ledger.publish(m.TextStreamed(turn=self.id, delta=message.text))
            case m.ModelNoticed():
                self.ledger.publish(m.Notice(text=message.text, seconds=message.seconds))
            case _:
                assert_never(message)

    def _cut_for_steer(self) -> None:
        """End the stream for a steer, once something came that the conversation can keep."""
        text = "".join(self.partial)
        is_wanted = self.environment.policy.steer_while_streaming == "cut"
        if not is_wanted or not text.strip():
            return
        # a result of a child can wait for the end of an answer
        if any(not item.child for item in self.record.queue.steers(self.id)):
            self.budget.settle(None)
            self.partial.clear()
            self.decide(turning.cut_for_steer(self._turn, text))

    def _answered(self, message: m.ModelAnswered) -> None:
        turn = self._turn
        if turn.state != "calling" or message.step != turn.step:
            self.decide(turning.late(self.id, "model", message.usage))
            return
        self.partial.clear()
        self.environment.learn_window(message.window)
        self.budget.settle(message.usage)
        used, size = message.usage, self.environment.compaction.window
        if size and used.input:
            tokens = used.input + used.output
            self.ledger.publish(m.WindowFilled(turn=self.id, tokens=tokens, size=size))
        self.decide(turning.answered(turn, message))

    def _model_failed(self, message: m.ModelFailed) -> None:
        turn, environment = self._turn, self.environment
        if turn.state != "calling" or message.step != turn.step:
            return
        environment.learn_window(message.window)
        self.budget.settle(Usage())
        if compacting.overflows(self.record, message, environment.compaction):
            self._compact("refused", message.reason)
            return
        if turning.can_wait(message, environment) and not self.partial:
            waits = turning.awaits_provider(turn, message, self.system.now())
            if turning.ends_at_provider_limit(environment):
                self._end_by(turning.refused_call(message), *waits.entries)
            else:
                self.decide(waits)
            return
        said = cut_short("".join(self.partial), NO_ANSWER)
        ending = turning.unanswered(message, said)
        if self.accepts(turning.model_failed(turn, message)):
            self._finish(ending)

    # Room in the window ---------------------------------------------------------------------------

    def _makes_room(self) -> bool:
        """Make room in the model's window if that is needed before it is asked; whether it does."""
        policy = self.environment.compaction
        wanted = compacting.room(self.record, policy)
        match wanted:
            case "asked" | "full":
                self._compact(wanted)
            case "nothing_new" | "done":
                if wanted == "nothing_new":
                    self.ledger.publish(m.Notice(text=f"Not summed up: {compacting.NOTHING_NEW}."))
                self._finish(Ending())
            case "gives_up":
                self._finish(compacting.gives_up(self.record, policy))
            case "":
                return False
        return True

    def _compact(self, why: str, refusal: str = "") -> None:
        policy = self.environment.compaction
        if not self._may_call():
            return
        record = self.record
        folded = compacting.folded(record, why, policy)
        asks = not folded and compacting.is_worth_it(record, why, policy)
        self.decide(compacting.begin(record, why, policy, refusal, asks=asks))
        turn = self._turn
        if asks or turn.state != "compacting":
            return
        self.budget.settle(Usage())
        if folded:
            self.decide(folded)
        else:
            reason = "what is older takes little room"
            self._replace(
                m.Summarised(turn=self.id, epoch=turn.epoch, step=turn.step, reason=reason)
            )

    def _summarised(self, message: m.Summarised) -> None:
        turn = self._turn
        if turn.state != "compacting" or message.step != turn.step:
            self.decide(turning.late(self.id, "summary", message.usage))
            return
        self.budget.settle(message.usage)
        self._replace(message)

    def _replace(self, message: m.Summarised) -> None:
        policy = self.environment.compaction
        found = compacting.compacted(self.record, message, policy)
        if isinstance(found, Ending):
            self._finish(found)
        else:
            self.decide(found)

    # Budget ---------------------------------------------------------------------------------------

    def _may_call(self) -> bool:
        """Reserve the next call; if a limit forbids it, stop, and say so."""
        refusal = self.budget.reserve(self.record, self.system.now())
        if not refusal:
            return True
        self._end_by(*turning.at_limit(self._turn, refusal))
        return False

    def _end_by(self, ending: Ending, entry: Entry, *before: Entry) -> None:
        """End the turn by a cause of its own: so that it can be resumed, or as `ending` says.

        The latter where the table has it so, and in a child, whose parent gets a result.
        """
        entries = (*before, entry)
        environment = self.environment
        row = deliver(environment.deliveries, ending.cause, Relation.SELF)
        if environment.delegation.depth or row.action not in ENDS:
            if self.accepts(Decision(entries=entries)):
                self._finish(ending)
        else:
            order = m.Interrupt(order=m.StopOrder(cause=ending.cause), turn=self.id)
            self.decide(Decision(entries=entries, orders=(("session", order),)))

    # Tools ----------------------------------------------------------------------------------------

    def _tool_finished(self, message: m.ToolFinished) -> None:
        call = self._turn.calls.get(message.call)
        if call is None or call.state not in ("running", "stopping"):
            self.decide(turning.late(self.id, f"tool {message.call}"))
        else:
            self.decide(turning.tool_ended(self.record, message))

    def _agent_told(self, message: m.AgentBound | m.AgentCalled | m.AgentCallEnded) -> None:
        """Take in what an agent says; what comes after its call's end is of no interest."""
        call = self._turn.calls.get(message.call)
        if call is None or call.state in CALL_ENDS:
            return
        if not isinstance(message, m.AgentCalled):
            self.decide(calls.agent_told(self._turn, message))
        elif self._turn.state == "acting":
            environment = self.environment
            self.decide(calls.agent_called(self._turn, message, environment))

    def _question_answered(self, message: m.Answer) -> Any:
        environment = self.environment
        turn, is_busy = self._turn, self.record.state == "busy"
        if is_busy and turn.state == "paused" and message.question == turn.question:
            choice = message.choice.strip().lower()
            if choice not in m.CHOICES:
                return refused_with(calls.no_answer(message))
            asked, user = message.question, message.user
            said = QuestionAnswered(turn=self.id, question=asked, choice=choice, user=user)
            if choice in GOES_ON:
                self.decide(Decision(entries=(said,)))
            elif turn.progress.is_asked:
                self._end_by(*progress.ended(turn, environment), said)
            else:
                self._end_by(*turning.at_limit(turn, turning.spent(environment), STEPS), said)
            return answer()
        decision = calls.answered(self.record, message, environment)
        if decision:
            self.accepts(decision)
        return decision.reply


def _begun(turn: TurnRecord) -> list[str]:
    """Name the calls that have begun and not ended."""
    return [c.id for c in turn.calls.values() if c.state not in (*CALL_ENDS, "requested")]


def _is_stopped(record: SessionRecord) -> bool:
    """Whether a stop has taken effect on the turn, or does now that no tool runs any more."""
    if turning.stop_of(record) is not None:
        return True
    return stopping.planned_stop(record) is not None and not running_calls(record)
