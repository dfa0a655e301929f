"""Runs of a workflow: its steps succeed, fail and hang as the dice say, people stop it, the program dies.

No command, function or agent of the workflow is ever started: its ports make up exit codes, outputs and
answers of the form that each step declares. So a workflow can be proved that would do harm, or cost.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any
from zlib import crc32

from msgspec.structs import replace
from pykka import ActorRef

from ..actors.decisions.run_work import COMMAND
from ..actors.environment import Permit
from ..actors.kernel.mailbox import reply
from ..journal import entries as e
from ..machines import protocol as m
from ..machines.conversation import ToolRequest
from ..machines.delivery import Relation
from ..machines.disposition import Intent
from ..machines.lifecycles import RUN
from ..machines.policy import DelegationPolicy, GoalPolicy, Limits, Policy
from ..machines.steps import UNDECIDED, WORKFLOW, given_in
from ..machines.value import Value
from ..workflows.flow.graph import waits_for
from ..workflows.flow.spec import (
    AgentAction,
    JudgeAction,
    Kind,
    Output,
    StepSpec,
    WorkflowAction,
    WorkflowSpec,
)
from ..workflows.tools import STEP
from .choices import Seed, chooser_of, dice_of
from .family import check_families, check_family_at_rest
from .happening import Appended, Crashed, Happening
from .lanes import LaneWatch
from .person import open_questions
from .ports import PATIENCE, SAYS, Chances, SimulatedPorts, Verdicts
from .program import ROOT, SimulatedProgram
from .promises import (
    check_history,
    check_liveness,
    check_replay,
    check_state,
    durable_entries,
)
from .samples import Samples
from .schedule import Dice
from .session import AGENTS, SimulatedRun, SimulatedToolPolicy, SimulationPlan

MOST_STEPS = 60_000
MOST_ROUNDS = 200
"""How often a person continues a run before it is said that it never ends."""
COMMANDS = (Kind.RUN, Kind.SHELL, Kind.CALL)
Included = Callable[[str, WorkflowSpec], WorkflowSpec]
"""Finds the workflow that a step of another names."""
_CHANGES = (
    m.QueueChange(op="hold"),
    m.QueueChange(op="release"),
    m.QueueChange(op="withdraw"),
    m.QueueChange(op="clear"),
    m.QueueImport(items=(m.ImportedItem(said=m.Said(text="saved words"), is_interrupted=True),)),
)
"""What a person may do to the queue of a run: to the run itself, and to what is said to it."""
_QUOTED = re.compile(r"'([^'\n]{1,40})'|\"([^\"\n]{1,40})\"")


class Workflow:
    """A workflow to be played, with those that it includes.

    Its required variables are made up for each seed, the others have their defaults.
    """

    def __init__(self, spec: WorkflowSpec, included: Included | None = None) -> None:
        self.spec = spec
        self.words = tuple(dict.fromkeys(_words_of(spec)))
        self._find = included

    @property
    def is_remote(self) -> bool:
        """Whether a step of it may run on another machine."""
        return any(step.remote is not None for step in self.spec.steps)

    def run(self, samples: Samples) -> SimulatedRun:
        """Return a run of it."""
        required = {name: samples.text() or "x" for name in self.spec.required}
        return SimulatedRun(spec=self.spec, variables={**self.spec.variables, **required})

    def included(self, name: str, above: WorkflowSpec, task: str) -> SimulatedRun:
        """Return the run of a step that is a workflow."""
        assert self._find is not None, f"workflow `{name}` is not known here"
        spec = self._find(name, above)
        return SimulatedRun(spec=spec, variables={**spec.variables, **given_in(name, task)})

    @property
    def agents(self) -> tuple[str, ...]:
        """The agents and workflows that its steps name."""
        return tuple(dict.fromkeys(_agents_of(self.spec)))


def _words_of(spec: WorkflowSpec) -> Iterator[str]:
    """List the texts in quotes of a workflow, with which its conditions may compare."""
    for match in _QUOTED.finditer(spec.source):
        yield match[1] or match[2]


def _agents_of(spec: WorkflowSpec) -> Iterator[str]:
    yield from AGENTS
    yield "judge"
    for step in spec.steps:
        match step.action:
            case AgentAction(agent=agent) | JudgeAction(agent=agent) if agent:
                yield agent
            case WorkflowAction(name=name):
                yield f"{WORKFLOW}{name}"
            case _:
                pass


class Luck(Value):
    """How often a command fails or takes too long, and an answer has not the declared form.

    `loses`: how often the worker of a remote step is lost, before or after the command's effect.
    """

    fails: float = 0.15
    hangs: float = 0.1
    rambles: float = 0.05
    loses: float = 0.1


# What comes back ----------------------------------------------------------------------------------


class WorkflowPorts(SimulatedPorts):
    """Ports that make results up as the steps of a workflow declare them."""

    def __init__(self, words: tuple[str, ...], luck: Luck, **given: Any) -> None:
        super().__init__(**given)
        self._luck = luck
        self._samples = Samples(self.dice, words)

    def text(self, at: m.CallModel) -> str:
        """Return what the agent of a step says: a verdict, or an output of the declared form."""
        step = self._own_step()
        if step is None or self.dice.random() < self._luck.rambles:
            return self._samples.text() or super().text(at)
        if isinstance(step.action, JudgeAction):
            return self.dice.choice((SAYS["done"], SAYS["continue"], SAYS["impossible"]))
        return self._output(step.output)

    def result(self, at: m.RunTool, status: m.ToolStatus) -> m.ToolResult:
        """Return how a command or function of a step ended."""
        if at.tool != COMMAND:
            return super().result(at, status)
        if status == "unknown":
            return m.ToolResult(status=status, text="its worker was lost")
        if status in ("killed", "timed_out"):
            killed = self.pids(status)
            return m.ToolResult(status=status, text="part of it", exit_code=-15, killed=killed)
        spec, dice = self.session().environment.workflow, self.dice.random()
        step = spec.step(at.step) if spec is not None else None
        if step is None or dice < self._luck.fails / 5:
            return m.ToolResult(status="failed", text="[it could not be started]", exit_code=None)
        if dice < self._luck.fails:
            codes = [code for code in (1, 2, 127, -9) if code not in step.exit_codes]
            text = self._samples.text()
            return m.ToolResult(
                status="failed",
                text=text,
                errors="it went wrong",
                exit_code=self.dice.choice(codes),
            )
        code = 0 if step.kind is Kind.CALL else self.dice.choice(step.exit_codes)
        rambles = self.dice.random() < self._luck.rambles
        text = self._samples.text() if rambles else self._output(step.output)
        return m.ToolResult(status="ok", text=text, exit_code=code, bytes=len(text))

    def _run(self, effect: m.RunTool, reply_to: ActorRef[Any] | None) -> None:
        """Let a command run for a while, or until its time is up."""
        super()._run(effect, reply_to)
        limit = effect.arguments.get("timeout", 0.0) if effect.tool == COMMAND else 0.0
        if limit and self.dice.random() < self._luck.hangs:
            call = self.tools[effect.call]
            self._later(limit, lambda: self._end(call, "timed_out"))
        if "remote" in effect.arguments and self.dice.random() < self._luck.loses:
            self._later(self._delay(), lambda: self._lose(effect, reply_to))

    def _lose(self, effect: m.RunTool, reply_to: ActorRef[Any] | None) -> None:
        """Lose the worker of a command; what it had done may be reported late, without a waiter."""
        call = self.tools.get(effect.call)
        if call is None:
            return
        self._end(call, "unknown")
        if self.dice.random() < 0.3:
            late = m.ToolFinished(
                turn=effect.turn,
                epoch=effect.epoch,
                call=effect.call,
                result=m.ToolResult(status="ok", text="late", exit_code=0),
            )
            self._later(self._delay(), lambda: reply(reply_to, late))

    def _output(self, output: Output) -> str:
        match output.form:
            case "lines":
                return self._samples.lines()
            case "json":
                return self._samples.json(output.schema)
            case _:
                return self._samples.text()

    def _own_step(self) -> StepSpec | None:
        """Return the step that this session works for."""
        above = self.session().above
        run = above.record.run if above is not None else None
        spec = above.environment.workflow if above is not None else None
        for step in run.steps.values() if run is not None else ():
            if self.session().environment.path[-1] in step.children.values() and spec is not None:
                return spec.step(step.id)
        return None


# The person ---------------------------------------------------------------------------------------


class Operator:
    """The person who started the run: answers questions, stops, steers, leaves, and continues it."""

    def __init__(self, program: SimulatedProgram, dice: Dice, words: int) -> None:
        self._program = program
        self._dice = dice
        self._left = words
        self._said = 0
        self._patience = dice.choice((1.0, 10.0, 60.0))  # seconds
        program.timeline.after(self._pause(), self._act, "user")

    def _pause(self) -> float:
        return self._patience * self._dice.random()

    def _act(self) -> None:
        if self._left > 0:
            self._left -= 1
            self._program.utter(self._thing())
            self._program.timeline.after(self._pause(), self._act, "user")

    def _thing(self) -> Any:
        dice = self._dice.random()
        if dice < 0.4 and (questions := list(self.questions())):
            return self.answer(self._dice.choice(questions))
        if dice < 0.6:
            return m.Interrupt(
                order=m.StopOrder(
                    cause="stop", said=m.Said(text="", client_id=self._dice.choice(("", "k1")))
                )
            )
        if dice < 0.75:
            return self._steer()
        if dice < 0.85:
            return self._dice.choice(_CHANGES)
        if dice < 0.97:
            return m.ResumeQueue()
        return m.Suspend(cause=self._dice.choice(("exit", "signal")))

    def _steer(self) -> m.UserMessage:
        self._said += 1
        text = f"words {self._said}"
        return m.UserMessage(
            type="steer",
            said=m.Said(text=text, user="ann", client_id=f"c{self._said}"),
            intent=Intent.EXPLICIT_STEER,
        )

    def questions(self) -> Iterator[str]:
        """List what is asked: by the steps of all runs, and for permission."""
        for session in list(self._program.world.open):
            record = self._program.record_of(session)
            if record is not None and record.run is not None:
                yield from record.run.questions
        yield from (question for question, _ in open_questions(self._program))

    def answer(self, question: str) -> m.Answer:
        """Answer a question with one of its options, with anything, or not at all."""
        choices = [option for entry in self._asked(question) for option in entry.options]
        choice = self._dice.choice((*choices, *choices, "allow", "deny", "anything"))
        reason = "no time" if choice == "deny" and self._dice.random() < 0.5 else ""
        return m.Answer(question=question, choice=choice, reason=reason)

    def _asked(self, question: str) -> list[e.StepAsked]:
        found = [one.entry for _, one in self._program.chronicle.all if isinstance(one, Appended)]
        asked = [entry for entry in found if isinstance(entry, e.StepAsked)]
        return [entry for entry in asked if entry.question == question][-1:]


# The scenario -------------------------------------------------------------------------------------


class HoldingToolPolicy(SimulatedToolPolicy):
    """Holds the work of a third of the steps and items, by their names."""

    def permit(self, request: ToolRequest) -> Permit:
        """Look at the name of a step's work, else as usual."""
        if request.tool == STEP and not crc32(request.arguments["step"].encode()) % 3:
            return Permit(do="ask", rule="hold", is_hold=True)
        return super().permit(request)


class WorkflowScenario:
    """A run of a workflow, continued until it has ended. Everything about it follows from `seed`.

    `changes` are fields of its plan (`SimulationPlan`) that are to be otherwise.
    """

    def __init__(self, seed: Seed, workflow: Workflow, **changes: Any) -> None:
        self.dice = dice = dice_of(seed)
        chooser = chooser_of(seed, dice)
        self.workflow = workflow
        luck = Luck(
            fails=dice.choice((0.0, 0.05, 0.3)),
            hangs=dice.choice((0.0, 0.2)),
            rambles=dice.choice((0.0, 0.0, 0.1)),
            loses=dice.choice((0.0, 0.2)) if workflow.is_remote else 0.0,
        )
        longest = dice.choice((1.0, 4.0, 10.0))
        is_held = longest == 4.0  # no dice of its own: the seeds of others stay what they are
        tools = HoldingToolPolicy if is_held else SimulatedToolPolicy
        plan = SimulationPlan(
            policy=Policy(
                busy_mode=dice.choice(("interrupt", "steer", "queue")),
                after_interrupt=dice.choice(("hold", "continue")),
                can_ask=is_held,
            ),
            chances=Chances(
                calls=dice.choice((0.0, 0.3)),
                model_fails=dice.choice((0.0, 0.05)),
                longest=longest,
                verdicts=Verdicts(longest=longest / 2),
                tells_when=longest == 10.0,
            ),
            crash_at=dice.randrange(3, 60) if dice.random() < 0.3 else None,
            crash_side=dice.choice(("before", "after")),
            longest_batch=dice.choice((1, 8)),
            haste=dice.choice((0.01, 0.2, 1.0)),
            delegation=DelegationPolicy(
                agents=workflow.agents,
                max_depth=3,
                max_children=dice.choice((1, 4)),
                timeout=0.0,
            ),
            goals=GoalPolicy(max_turns=3, max_judge_failures=1, max_failed_turns=2, backoff=0.0),
            limits=Limits(wait_minutes=PATIENCE),
            most_children=1_000,
            watch=LaneWatch(),
            ports_type=partial(WorkflowPorts, workflow.words, luck),
            run=workflow.run(Samples(dice, workflow.words)),
            tool_policy=lambda record: tools(record=record),
            included=workflow.included,
        )
        self.plan = replace(plan, **changes)
        self.program = SimulatedProgram(self.plan, dice, chooser)
        self.operator = Operator(self.program, dice, dice.choice((0, 3, 12)))
        self.crash_step = dice.randrange(5, 400) if dice.random() < 0.3 else -1
        self.poison_step = dice.randrange(5, 300) if dice.random() < 0.1 else -1
        self.tries = dice.choice((0, 1, 2))
        self.is_poisoned = False
        self._rounds = 0

    def run(self) -> SimulatedProgram:
        """Play it to its end, and check every promise on the way."""
        try:
            self._play()
        finally:
            self.program.close()
        return self.program

    def _play(self) -> None:
        program = self.program
        self._continue()
        for step in range(MOST_STEPS):
            if not program.step() and not self._go_on():
                break
            check_state(program, self.is_poisoned)
            if step == self.crash_step and program.is_running:
                program.crash()
            if step == self.poison_step and program.is_running:
                self.is_poisoned = True
                program.poison()
            if not program.is_running:
                program.restart()
        else:
            raise AssertionError(f"no quiet after {MOST_STEPS} steps")
        for session, history in program.chronicle.of.items():
            is_alive = session == ROOT or program.record_of(session) is not None
            check_history(
                [*history, *(() if is_alive else (Crashed(),))],
                is_child=session != ROOT,
                is_run=_is_run(history),
            )
        check_families(program.chronicle)
        check_run(self.plan.run or self.workflow.run(Samples(self.dice)), program.history)
        no_child_is_left_behind(program)
        check_liveness(program)
        check_family_at_rest(program)
        check_replay(program)

    def _go_on(self) -> bool:
        """When nothing moves any more, answer what is asked, and continue the run; false at its end."""
        self._rounds += 1
        assert self._rounds <= MOST_ROUNDS, (
            f"the run never ends: it was continued {MOST_ROUNDS} times"
        )
        if self.program.record.state == "suspended":
            self.program.crash()  # an exit is the same as a crash in this state
            self.program.restart()
            return True
        if questions := list(self.operator.questions()):
            for question in questions:
                self.program.say(self.operator.answer(question))
            return True
        return self._continue()

    def _continue(self) -> bool:
        """Begin the run, or continue it as `steersman run --resume` does; false if it has ended."""
        program, record = self.program, self.program.record
        run = record.run
        if run is not None and (run.state in RUN.final or record.state == "finalized"):
            return False
        if run is not None and run.state == "failed":
            self.tries -= 1
            if self.tries < 0:
                return False
        if run is not None and (unknown := tuple(run.unknown())):
            if self.dice.random() < 0.3:
                program.say(m.ResumeQueue())  # refused, unless all of it may be repeated
            program.say(m.Reopen(work=unknown, is_done=self.dice.random() < 0.3))
        if run is not None and run.state == "failed":
            program.say(m.TryAgain())
            return True
        if record.queue.items:
            program.say(m.ResumeQueue())
        else:
            text = f"run {self.workflow.spec.name}"
            intent = Intent.EXPLICIT_QUEUE
            program.say(
                m.UserMessage(type="normal", said=m.Said(text=text, client_id="run"), intent=intent)
            )
        return True


def _is_run(history: list[Happening]) -> bool:
    """Whether a session runs a workflow."""
    opened = (happening.entry for happening in history if isinstance(happening, Appended))
    return any(isinstance(entry, e.SessionOpened) and entry.workflow for entry in opened)


# The promises about runs --------------------------------------------------------------------------


Work = tuple[str, int]
"""A step, and the index of the item that it works on."""


def check_run(run: SimulatedRun, history: list[Happening]) -> None:
    """Every promise about a run that can be read off what happened."""
    journal = durable_entries(history)
    steps_wait_for_their_needs(run.spec, journal)
    done_work_is_done_once(journal)
    lost_work_is_a_persons_to_repeat(run.spec, journal)
    attempts_keep_their_bounds(run.spec, journal)
    a_step_is_done_with_all_its_work(journal)
    the_end_fits_the_steps(run.spec, journal)
    every_step_can_be_filled_in(run.spec, history)


def no_child_is_left_behind(program: SimulatedProgram) -> None:
    """A stopped child ends when its step has made another attempt, or has ended without it."""
    record = program.record
    if record.run is None or record.state not in ("idle", "busy"):
        return
    awaited = {name for step in record.run.steps.values() for name in step.children.values()}
    for child in record.children.values():
        is_left = child.state == "interrupted" and child.name not in awaited
        assert not (is_left and child.relation == Relation.FOREGROUND_CHILD), (
            f"`{child.name}` is {child.state}, and no step waits for it"
        )


def steps_wait_for_their_needs(spec: WorkflowSpec, journal: list[e.Entry]) -> None:
    """A step begins when all its needs have ended, and not if one failed that had to succeed.

    One that was under way when the run broke off goes on, also while a need is tried again.
    """
    ended, under_way, needs = dict[str, str](), set[str](), waits_for(spec.steps)
    final = {step.id for step in spec.steps if step.is_final}
    tolerant = {step.id for step in spec.steps if step.continue_on_error}
    for entry in journal:
        match entry:
            case e.StepStarted(step=name) if name not in under_way:
                step = spec.step(name)
                under_way.add(name)
                early = [need for need in needs[name] if need not in ended]
                assert not early, f"step `{name}` begins before `{early[0]}` has ended"
                for need in step.needs:
                    is_excused = need in step.handles or (step.is_final and need not in final)
                    is_bad = ended[need] == "blocked" or (
                        ended[need] == "failed" and need not in tolerant
                    )
                    assert is_excused or not is_bad, f"step `{name}` begins though `{need}` failed"
            case e.StepEnded(step=name, status=status):
                ended[name] = status
                under_way.discard(name)
            case e.StepReopened(step=name):
                ended.pop(name, None)
                under_way.discard(name)
            case _:
                pass


def done_work_is_done_once(journal: list[e.Entry]) -> None:
    """Work that is done is not done again; what a crash cut off only if the step or a person says so."""
    done, lost, running = set[Work](), set[Work](), dict[Work, bool]()
    for entry in journal:
        match entry:
            case e.ItemStarted(step=name, index=index, is_child=is_child):
                work = name, index
                assert work not in done, (
                    f"step `{name}` does item {index + 1} again, which was done"
                )
                assert work not in lost, (
                    f"step `{name}` repeats item {index + 1} of unknown outcome"
                )
                running[work] = is_child
            case e.ItemEnded(step=name, index=index, status=status):
                running.pop((name, index), None)
                done |= {(name, index)} if status == "ok" else set()
                lost |= {(name, index)} if status == "unknown" else set()
            case e.StepAsked(step=name, index=index):
                running.pop((name, index), None)
            case e.StepReleased(step=name, index=index, is_child=is_child):
                running[name, index] = is_child
            case e.ItemReopened(step=name, index=index, is_done=is_done):
                lost.discard((name, index))
                done |= {(name, index)} if is_done else set()
            case e.StepEnded(step=name, status="done"):
                left = [index for step, index in lost if step == name]
                assert not left, f"step `{name}` is done without item {left[0] + 1}, which was lost"
            case e.StepReopened(step=name, is_anew=True):
                done = {work for work in done if work[0] != name}
                lost = {work for work in lost if work[0] != name}
            case e.Recovered():
                lost |= {work for work, is_child in running.items() if not is_child}
                running.clear()
            case e.Stopped(turn=turn) if turn:
                running.clear()
            case e.TurnEnded():
                running.clear()
            case _:
                pass


def lost_work_is_a_persons_to_repeat(spec: WorkflowSpec, journal: list[e.Entry]) -> None:
    """While a run goes on, only idempotent steps do work of unknown outcome again."""
    is_going, paused = False, set[tuple[str, int]]()
    for entry in journal:
        match entry:
            case e.TurnStarted():
                is_going = True
                paused.clear()
            case e.TurnEnded() | e.Recovered():
                is_going = False
            case e.Stopped(turn=turn) if turn:
                is_going = False
            case e.ItemEnded(step=name, index=index, status="retry"):
                paused.add((name, index))
            case e.ItemReopened(step=name, index=index) if (name, index) in paused:
                paused.remove((name, index))
            case e.ItemReopened(step=name, index=index) if is_going:
                assert spec.step(name).idempotent, (
                    f"step `{name}` repeats item {index + 1} of unknown outcome unasked"
                )
            case _:
                pass


def attempts_keep_their_bounds(spec: WorkflowSpec, journal: list[e.Entry]) -> None:
    """No more work at a time than `parallel` allows, and no more attempts than `retry`."""
    running = set[Work]()
    for entry in journal:
        match entry:
            case e.ItemStarted(step=name, index=index, attempt=attempt):
                running.add((name, index))
                step, here = spec.step(name), sum(work[0] == name for work in running)
                assert here <= max(1, step.parallel), f"step `{name}` does {here} items at a time"
                assert len(running) <= spec.parallel, (
                    f"the run does {len(running)} things at a time"
                )
                assert attempt <= 1 + step.retry.max, f"step `{name}` is attempted {attempt} times"
            case e.ItemEnded(step=name, index=index):
                running.discard((name, index))
            case e.Recovered() | e.TurnEnded():
                running.clear()
            case e.Stopped(turn=turn) if turn:
                running.clear()
            case _:
                pass


def a_step_is_done_with_all_its_work(journal: list[e.Entry]) -> None:
    """A step is done when each of its items is; of unknown work a person has said so."""
    counts, done = dict[str, int](), dict[str, set[int]]()
    for entry in journal:
        match entry:
            case e.StepStarted(step=name, items=items) if name not in counts:
                counts[name] = 1 if items is None else len(items)
            case e.ItemEnded(step=name, index=index, status="ok"):
                done.setdefault(name, set()).add(index)
            case e.ItemReopened(step=name, index=index, is_done=True):
                done.setdefault(name, set()).add(index)
            case e.StepReopened(step=name, is_anew=True):
                counts.pop(name, None)
                done.pop(name, None)
            case e.StepEnded(step=name, status="done"):
                left = counts[name] - len(done.get(name, ()))
                assert not left, f"step `{name}` is done though {left} of its items are not"
            case _:
                pass


def the_end_fits_the_steps(spec: WorkflowSpec, journal: list[e.Entry]) -> None:
    """A run ends when each step has, and succeeds only if no failure is left that counts."""
    ended = dict[str, str]()
    for entry in journal:
        match entry:
            case e.StepEnded(step=name, status=status):
                ended[name] = status
            case e.StepReopened(step=name):
                ended.pop(name, None)
            case e.TurnEnded(status=status, reason=reason) if "fault in the program" not in reason:
                left = [step.id for step in spec.steps if step.id not in ended]
                is_undecided = status == "failed" and reason.startswith(UNDECIDED)
                left = [] if is_undecided else left
                assert not left, f"the run ended though step `{left[0]}` had not"
                bad = list(_failures(spec, ended)) if status == "completed" else []
                assert not bad, f"the run succeeded though step `{bad[0]}` failed"
            case _:
                pass


def _failures(spec: WorkflowSpec, ended: Mapping[str, str]) -> Iterator[str]:
    """Name the steps whose failure counts: no other step has looked at it, and is done."""
    handled = {name for step in spec.steps if ended[step.id] == "done" for name in step.handles}
    for step in spec.steps:
        is_failure = ended[step.id] == "failed" and not step.continue_on_error
        if is_failure and step.id not in handled:
            yield step.id


def every_step_can_be_filled_in(spec: WorkflowSpec, history: list[Happening]) -> None:
    """No step fails because its texts cannot be filled in, whatever became of the steps before it.

    Of a step behind JSON without a schema that cannot be said: what was made up may have another form.
    """
    unsure = _unsure(spec)
    begun, calls, with_child = set[str](), dict[str, Work](), set[Work]()
    before: Happening | None = None
    for happening in history:
        match happening:
            case Appended(seq=_, entry=e.StepStarted(step=name)):
                begun.add(name)
            case Appended(seq=_, entry=e.StepReopened(step=name, is_anew=True)):
                begun.discard(name)
            case Appended(seq=_, entry=e.ItemStarted(step=name, index=index, call=call)):
                calls[call] = name, index
            case Appended(seq=_, entry=e.ChildStarted(call=call)) if call in calls:
                with_child.add(calls[call])  # what is taken up may be over at once
            case Appended(seq=_, entry=e.StepEnded(step=name, status="failed", reason=why)):
                is_sure = name not in unsure
                assert name in begun or not is_sure, f"step `{name}` cannot begin: {why}"
            case Appended(seq=_, entry=e.ItemEnded(status="failed" | "retry") as entry):
                work = entry.step, entry.index
                if _has_just_begun(before, work) and work not in with_child:
                    is_sure = entry.step not in unsure
                    assert not is_sure, f"step `{entry.step}` cannot begin: {entry.result.reason}"
            case Appended(seq=_, entry=e.TurnEnded(reason=reason)):
                is_output = reason.startswith("`workflow.output`") and not unsure
                assert not is_output, f"the run fails at its end: {reason}"
            case _:
                pass
        before = happening


def _has_just_begun(before: Happening | None, work: Work) -> bool:
    """Whether the last that happened is that an attempt at this work began: it never had its effect."""
    entry = before.entry if isinstance(before, Appended) else None
    return isinstance(entry, e.ItemStarted) and (entry.step, entry.index) == work


def _unsure(spec: WorkflowSpec) -> set[str]:
    """Name the steps that have JSON of unknown form, and those behind them."""
    found = {
        step.id
        for step in spec.steps
        if step.kind is Kind.WORKFLOW or (step.output.form == "json" and step.output.schema is None)
    }
    needs = waits_for(spec.steps)
    while more := {name for name in needs if name not in found and found & {*needs[name]}}:
        found |= more
    return found
