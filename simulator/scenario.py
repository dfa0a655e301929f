"""One run from one seed: a program, a person, crashes, and quiet at the end."""

from typing import Any

from msgspec.structs import replace

from ..actors.kernel.mailbox import tell
from ..journal import entries as e
from ..machines import protocol as m
from ..machines.policy import CompactionPolicy, DelegationPolicy, Limits, Policy
from .choices import Seed, chooser_of, dice_of
from .family import (
    check_families,
    check_family_at_rest,
    check_talk,
)
from .happening import Appended, Crashed, Performed
from .lanes import LaneWatch
from .person import SimulatedPerson, open_questions
from .ports import PATIENCE, Chances
from .program import ROOT, SimulatedProgram
from .promises import (
    check_history,
    check_liveness,
    check_replay,
    check_state,
    check_stops_are_prompt,
    what_changes_files_runs_alone,
)
from .session import AGENTS, SimulationPlan
from .writer import Failure

MOST_STEPS = 20_000
MOST_SECONDS, MOST_SECONDS_EACH = 1_000.0, 10.0
"""Virtual seconds that a run may take, and those for each effect that is handed to the ports."""


class Scenario:
    """A session's run. Everything about it follows from `seed`; every other one uses priorities.

    `changes` are fields of its plan (`SimulationPlan`) that are to be otherwise.
    """

    def __init__(self, seed: Seed, **changes: Any) -> None:
        self.dice = dice = dice_of(seed)
        chooser = chooser_of(seed, dice)
        policy = Policy(
            busy_mode=dice.choice(("interrupt", "steer", "queue")),
            strategy=dice.choice(("keyword", "always", "never")),
            is_auto_queue=dice.random() < 0.3,
            max_queue_size=dice.choice((1, 3, 10)),
            after_interrupt=dice.choice(("hold", "continue")),
            can_ask=dice.random() < 0.8,
            interrupt_at=dice.choice(("now", "boundary")),
            steer_while_streaming=dice.choice(("wait", "cut")),
        )
        chances = Chances(
            calls=dice.choice((0.4, 0.9)),
            longest=dice.choice((1.0, 4.0, 10.0)),
            delegates=dice.choice((0.0, 0.2, 0.5)),
        )
        waits = chances.longest == 4.0  # no dice of its own: the seeds of others stay what they are
        plan = SimulationPlan(
            policy=policy,
            chances=replace(chances, tells_when=True, model_fails=0.2) if waits else chances,
            crash_at=dice.randrange(3, 40) if dice.random() < 0.25 else None,
            crash_side=dice.choice(("before", "after")),
            max_steps=dice.choice((2, 8)),
            longest_batch=dice.choice((1, 1, 8)),
            haste=dice.choice((0.01, 0.1, 1.0)),
            delegation=DelegationPolicy(
                agents=AGENTS,
                max_children=dice.choice((1, 2, 4)),
                when_full=dice.choice(("wait", "refuse")),
                detached=dice.choice(((), (), ("scout",))),
                steer_deadline=dice.choice((0.0, 5.0, 60.0)),
                wrap_up=dice.choice((2.0, 30.0)),
                timeout=dice.choice((0.0, 0.0, 0.0, 20.0)),
            ),
            limits=Limits(
                max_tokens=dice.choice((0, 0, 0, 0, 60)), wait_minutes=PATIENCE if waits else 0.0
            ),
            compaction=CompactionPolicy(window=dice.choice((0, 0, 0, 0, 0, 60)), keep=0.3),
            watch=LaneWatch(),
        )
        self.plan = replace(plan, **changes)
        self.program = SimulatedProgram(self.plan, dice, chooser)
        self.user = SimulatedPerson(
            self.program, dice, dice.choice((4, 10, 25)), dice.random() < 0.1
        )
        self.crash_step = dice.randrange(5, 200) if dice.random() < 0.2 else -1
        self.poison_step = dice.randrange(5, 150) if dice.random() < 0.15 else -1
        self.break_step = dice.randrange(5, 150) if dice.random() < 0.05 else -1
        self.stops_spawns = dice.choice((0.0, 0.0, 0.3)) if not self.user.only_talks else 0.0
        self.is_poisoned = False
        self._seen = 0

    def run(self) -> SimulatedProgram:
        """Play it to its end, and check every promise on the way."""
        try:
            self._play()
        finally:
            self.program.close()
        return self.program

    def _play(self) -> None:
        program = self.program
        began = program.timeline.now
        for step in range(MOST_STEPS):
            if not program.step() and not self._go_on():
                break
            check_state(program, self.is_poisoned)
            self._disturb(step)
            self._restart_if_dead()
        else:
            raise AssertionError(f"no quiet after {MOST_STEPS} steps")
        histories = program.chronicle.of.values()
        done = sum(isinstance(step, Performed) for history in histories for step in history)
        assert program.timeline.now - began < MOST_SECONDS + MOST_SECONDS_EACH * done
        for session, history in program.chronicle.of.items():
            end = () if self._is_alive(session) else (Crashed(),)  # it failed with its supervisor
            check_history([*history, *end], is_child=session != ROOT)
            what_changes_files_runs_alone(history, program.environment.tool_policy.is_mutating)
        deliveries = program.environment.deliveries
        check_families(program.chronicle, self.plan.delegation.detached, deliveries)
        is_unlimited = not self.plan.limits.max_tokens  # else that stops children, too
        if self.user.only_talks and is_unlimited and not self.is_poisoned:
            check_talk(program.chronicle)
        check_stops_are_prompt(program, self.plan.chances)
        check_liveness(program)
        check_family_at_rest(program)
        check_replay(program)

    def _is_alive(self, session: str) -> bool:
        """Whether a session that the program owns has its actor."""
        live = self.program.world.open.get(session)
        return live is None or (live.ref is not None and live.ref.is_alive())

    def _go_on(self) -> bool:
        """When nothing moves any more, answer what is asked; leave a program whose store broke.

        Of a disk that was full, the sessions that broke off may as well be recovered.
        """
        program = self.program
        if "full" in program.writer.failures.values() and self.dice.random() < 0.5:
            program.writer.failures.clear()
            tell(program.root.ref, m.RecoverRecord())
            program.say(m.ResumeQueue())
            return True
        if program.writer.failures:
            program.crash()
            program.restart()
            return True
        questions = list(open_questions(program))
        for question, _ in questions:
            program.say(m.Answer(question=question, choice=self.dice.choice(("allow", "deny"))))
        return bool(questions)

    def _disturb(self, step: int) -> None:
        program = self.program
        if step == self.crash_step and program.is_running:
            program.crash()
        if step == self.break_step and program.is_running:
            self._break()
        if step == self.poison_step and program.is_running:
            self.is_poisoned = True
            program.poison()
        self._stop_a_spawn()

    def _break(self) -> None:
        """Let nothing more be written of a session, or of any."""
        sessions = list(self.program.world.open)
        why: Failure = self.dice.choice(("full", "lost", "wrong"))
        broken = sessions if why == "full" else [self.dice.choice(sessions)]
        self.program.writer.failures.update(dict.fromkeys(broken, why))

    def _stop_a_spawn(self) -> None:
        """Say stop within a step of a child's start, where that is most awkward."""
        chronicle = self.program.chronicle.all
        news, self._seen = chronicle[self._seen :], len(chronicle)
        for _, happening in news:
            entry = happening.entry if isinstance(happening, Appended) else None
            is_spawn = isinstance(entry, e.ChildStarted)
            is_spawn = is_spawn or (isinstance(entry, e.ToolIntended) and entry.tool == "delegate")
            if is_spawn and self.dice.random() < self.stops_spawns:
                self.program.utter(m.Interrupt(order=m.StopOrder(cause="stop")))

    def _restart_if_dead(self) -> None:
        program = self.program
        is_left = program.is_running and program.record.state == "suspended"
        if is_left and not self._is_writing() and self.dice.random() < 0.2:
            program.crash()  # an exit is the same as a crash in this state
        if not program.is_running:
            program.restart()

    def _is_writing(self) -> bool:
        program = self.program
        program.dispatcher.end_pass()
        return bool(program.writer.waiting())
