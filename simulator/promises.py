"""The promises, as checks of a run.

`check_state` looks at the living session after each step. `check_history` reads everything that
happened, from the first start to quiet, so it finds whatever was wrong after any step: each check in
`HISTORY` is one promise, and they stand in the order of the headings below, from the journal to the
ends of a session. `check_liveness`, `check_stops_are_prompt` and `check_replay` look at the end.

What is `appended` may die in a crash; a seq that is appended again belongs to the next incarnation.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pykka.messages import _ActorStop  # pyright: ignore[reportPrivateUsage]

from ..actors.decisions.rearrangement import NOTHING_RUNS
from ..actors.kernel.actor import Actor
from ..actors.kernel.mailbox import BOUND
from ..journal import entries as e
from ..journal.log import Log
from ..journal.queue_record import QueueRecord
from ..journal.record import SessionRecord, apply, grown, messages_of
from ..journal.recovery import fold, load_record
from ..machines import protocol as m
from ..machines.conversation import ChatMessage
from ..machines.lifecycles import ITEM, TURN
from .happening import (
    Appended,
    Crashed,
    Durable,
    Failed,
    Happening,
    Passed,
    Performed,
    Released,
    Sent,
    Started,
    Told,
    Uttered,
)
from .ports import Chances
from .program import ROOT, SimulatedProgram
from .schedule import waiting_in

ENDED = TURN.final
WORDS = (
    m.UserMessage
    | m.ResumeQueue
    | m.QueueChange
    | m.TakeBack
    | m.Compact
    | m.SetGoal
    | m.ChangeGoal
    | m.TryAgain
)
"""What people say that may let something run."""
Cancel = e.InterruptPlanned | e.InterruptRequested
History = Sequence[Happening]


# After each step ----------------------------------------------------------------------------------


def check_state(program: SimulatedProgram, is_poisoned: bool = False) -> None:
    """No actor died without a planted fault, at most one turn runs, mailboxes are bounded."""
    check_letters(program, is_poisoned)
    if not program.is_running:
        return
    assert program.supervisor.is_alive(), "the root has died"
    record = program.record
    running = [turn for turn in record.turns.values() if turn.state not in ENDED]
    assert len(running) <= 1, f"{len(running)} turns run"
    assert sum(item.state == "running" for item in record.queue.live()) <= 1
    most = 1 + 7 * max(1, len(program.chronicle.of))
    living = program.system.living()
    ending = sum(_is_told_to_end(actor) for actor in living) if len(living) > most else 0
    assert len(living) - ending <= most, (
        "the root; session, child supervisor, queue, turn, goal, judge, one that ends"
    )
    for mailbox in program.dispatcher.ready:
        assert max(mailbox.depth()) <= BOUND


def _is_told_to_end(actor: Actor) -> bool:
    waiting = [one.message for one in waiting_in(actor.mailbox)]
    return any(isinstance(message, _ActorStop | m.StopJudging) for message in waiting)


def check_letters(program: SimulatedProgram, is_poisoned: bool) -> None:
    """No actor died, but of poison, or of a store that died under it."""
    for letter in program.system.dead_letters:
        is_crash = "SimulatedCrash" in letter.reason
        is_poison = is_poisoned and letter.message == "ProxyCall"
        assert is_crash or is_poison, letter


# The history as a journal -------------------------------------------------------------------------


def durable_entries(history: History) -> list[e.Entry]:
    """Return the journal as it survived: what was appended again replaces what was lost."""
    journal: list[e.Entry] = []
    durable = 0
    for happening in history:
        match happening:
            case Started(seq=seq):
                del journal[seq:]
                durable = seq
            case Durable(seq=seq):
                durable = seq
            case Appended(seq=_, entry=entry):
                journal.append(entry)
            case _:
                pass
    if history and isinstance(history[-1], Crashed):  # it was never taken up again
        del journal[durable:]
    return journal


def appended(history: History) -> Iterator[tuple[int, e.Entry, list[e.Entry]]]:
    """Walk through all entries, each with those before it that were not lost."""
    journal: list[e.Entry] = []
    for at, one in enumerate(history):
        if isinstance(one, Started):
            del journal[one.seq :]
        elif isinstance(one, Appended):
            yield at, one.entry, journal
            journal.append(one.entry)


# The journal: what is told, done and called is durable before -------------------------------------


def sequence_is_dense(history: History) -> None:
    """Sequence numbers rise by one, and go on where the store was when the program started again."""
    last = 0
    for happening in history:
        if isinstance(happening, Started):
            last = happening.seq
        elif isinstance(happening, Appended):
            assert happening.seq == last + 1, f"{happening} follows {last}"
            last = happening.seq


def nothing_is_told_before_it_is_durable(history: History) -> None:
    """A listener gets an entry only when it is in the store, once, and in order."""
    durable = told = 0
    for happening in history:
        match happening:
            case Started(seq=seq):
                durable = told = seq
            case Durable(seq=seq):
                durable = max(durable, seq)
            case Told(seq=seq):
                assert seq <= durable, f"told of {seq}, durable is {durable}"
                assert seq == told + 1, f"told of {seq} after {told}"
                told = seq
            case _:
                pass


def known_is_said_of_durable_items(history: History) -> None:
    """That a message is known is said only when the one it repeats is in the store."""
    durable, places = 0, dict[str, int]()
    for happening in history:
        match happening:
            case Started(seq=seq):
                durable = seq
            case Durable(seq=seq):
                durable = max(durable, seq)
            case Appended(seq=seq, entry=e.Queued(item=item)):
                places[item] = seq
            case Passed(fact=m.MessageKnown(id=item)) if item in places:
                assert places[item] <= durable, f"{item} is said to be known, and is not durable"
            case _:
                pass


def effects_follow_durable_entries(history: History) -> None:
    """Each effect comes after the entries that were decided with it are in the store."""
    durable = 0
    for happening in history:
        match happening:
            case Started(seq=seq):
                durable = seq
            case Durable(seq=seq):
                durable = max(durable, seq)
            case Performed(effect=effect, decided=decided) | Sent(effect=effect, decided=decided):
                assert decided is not None, f"no decision asks for {effect}"
                assert decided <= durable, f"{effect} waits for {decided}, durable is {durable}"
            case _:
                pass


def calls_are_performed_once(history: History) -> None:
    """A tool's start comes once, after its own entry is in the store, and so does a summary.

    A model call comes once, after its own entry is decided; again where a crash took that.
    """
    durable, asked = 0, dict[Any, int]()
    done = Counter[Any]()
    for happening in history:
        match happening:
            case Started(seq=seq):
                durable = seq
                asked.clear()
                done = Counter({key: count for key, count in done.items() if key[1] <= seq})
            case Durable(seq=seq):
                durable = max(durable, seq)
            case Appended(seq=seq, entry=e.ModelCalled(turn=turn, step=step)):
                asked[turn, step] = seq
            case Appended(seq=seq, entry=e.ToolIntended(call=call) | e.ItemStarted(call=call)):
                asked[call] = seq
            case Appended(seq=seq, entry=e.CompactionBegun(turn=turn)):
                asked["summary", turn] = seq
            case Performed(effect=m.CallModel(turn=turn, is_summary=True)):
                _require_durable(("summary", turn), asked, durable, done)
            case Performed(effect=m.CallModel(turn=turn, step=step)):
                _require_once((turn, step), asked, done)
            case Performed(effect=m.RunTool(call=call)):
                _require_durable(call, asked, durable, done)
            case _:
                pass


def _require_durable(key: Any, asked: dict[Any, int], durable: int, done: Counter[Any]) -> None:
    _require_once(key, asked, done)
    assert asked[key] <= durable, f"{key} was performed before it was durable"


def _require_once(key: Any, asked: dict[Any, int], done: Counter[Any]) -> None:
    assert key in asked, f"{key} was never decided in this incarnation"
    done[key, asked[key]] += 1
    assert done[key, asked[key]] == 1, f"{key} was performed twice"


def a_model_is_heard_when_its_turn_is_durable(history: History) -> None:
    """What a model says or thinks is told only when the first call of its turn is in the store.

    It is asked only when all calls before are in the store.
    """
    durable, asked, calls = 0, dict[str, int](), dict[tuple[str, int], int]()
    for happening in history:
        match happening:
            case Started(seq=seq):
                durable = seq
                asked.clear()
                calls.clear()
            case Durable(seq=seq):
                durable = max(durable, seq)
            case Appended(seq=seq, entry=e.ModelCalled(turn=turn, step=step)):
                asked.setdefault(turn, seq)
                calls[turn, step] = seq
            case Performed(effect=m.CallModel(turn=turn, step=step, is_summary=False)):
                before = max((seq for seq in calls.values() if seq < calls[turn, step]), default=0)
                assert before <= durable, f"{happening} before call {before} is durable"
            case Passed(fact=m.TextStreamed(turn=turn) | m.ThoughtStreamed(turn=turn)):
                assert asked.get(turn, 0) <= durable, f"{happening} before {asked[turn]} is durable"
            case _:
                pass


# Messages: none is lost, none is done twice, all stay in order ------------------------------------


def every_message_is_answered(history: History) -> None:
    """What a person says becomes an item or an interrupt, or is refused, or known: never nothing."""
    if any(isinstance(happening, Crashed | Failed) for happening in history):
        return
    answered = set[str]()
    for one in history:
        match one:
            case Appended(
                seq=_, entry=e.Queued() | e.InterruptPlanned() | e.InterruptRequested() as entry
            ):
                answered.add(_key(entry))
            case Passed(
                fact=m.MessageRejected(said=m.Said(client_id=key)) | m.MessageKnown(client_id=key)
            ):
                answered.add(key)
            case _:
                pass
    for one in history:
        if isinstance(one, Uttered) and isinstance(one.message, m.UserMessage):
            assert one.message.said.client_id in answered, f"{one.message} was never answered"


def _key(entry: e.Queued | e.InterruptPlanned | e.InterruptRequested) -> str:
    """Return the sender's own key of what an entry took in."""
    return entry.said.client_id if isinstance(entry, e.Queued) else entry.order.said.client_id


def no_message_is_lost(history: History) -> None:
    """What was taken in has ended, or still waits when the journal is read again."""
    there, handed = dict[str, str](), dict[str, dict[str, str]]()
    of_goals = set[str]()  # these come and go with what they are for
    unanswered = ""
    for entry in durable_entries(history):
        if isinstance(entry, e.Queued) and entry.goal:
            of_goals.add(entry.item)
        match entry:
            case e.Queued(item=item) | e.Deferred(new_item=item) | e.Offered(item=item):
                there[item] = ""
                handed[item] = dict.fromkeys(getattr(entry, "for_children", ()), "")
            case e.SteerAddressed(item=item):
                handed[item] = dict.fromkeys(entry.for_children, "")
            case e.Requeued(item=item):
                handed[item] = {}
            case e.SteerArrived(item=item, child=child, turn=turn) if handed[item].get(child) in (
                "",
                "-",
            ):
                handed[item][child] = turn or "-"
                if "" not in handed[item].values() and set(handed[item].values()) != {"-"}:
                    there.pop(item, "")
            case e.TurnStarted(item=item, turn=turn):
                there.pop(unanswered, "")
                there[item], unanswered = turn, ""
            case e.TurnEnded(turn=turn, is_unanswered=True):
                [unanswered] = [item for item, ran in there.items() if ran == turn]
                there[unanswered] = ""
            case e.QueueReleased(items=items) if unanswered in items:
                unanswered = ""
            case e.TurnEnded(turn=turn):
                there = {item: ran for item, ran in there.items() if ran != turn}
            case e.Interrupted(turn=turn):
                there = {item: "" if ran == turn else ran for item, ran in there.items()}
            case e.Recovered():
                there = dict.fromkeys(there, "")
            case e.Steered(items=items):
                there = {item: ran for item, ran in there.items() if item not in items}
            case e.Withdrawn(item=item):
                there.pop(item)
            case _:
                pass
    record = SessionRecord()
    for seq, entry in enumerate(durable_entries(history), 1):
        apply(record, entry, seq, 0.0)
    waiting = (*record.queue.order, *aside(record.queue))
    left = {item for item in waiting if not record.queue.items[item].goal}
    kept = {item for item in there if item not in of_goals}
    assert kept == left, f"lost: {kept - left}; left over: {left - kept}"


def aside(queue: QueueRecord) -> list[str]:
    """Name what waits for a person who resumes a turn that another message replaced."""
    turns = {item.turn for item in queue.superseded()}
    waiting = [item for item in queue.items.values() if item.state == "pending"]
    steers = [item.id for item in waiting if item.for_turn in turns and item.id not in queue.order]
    lost = (queue.unanswered,) if queue.unanswered else ()
    return [*(item.id for item in queue.superseded()), *steers, *lost]


def one_client_id_one_run(history: History) -> None:
    """The same message sent again is the same item, and interrupts once."""
    seen = Counter[tuple[bool, str]]()
    for entry in durable_entries(history):
        if isinstance(entry, e.Queued | Cancel) and _key(entry):
            key = isinstance(entry, e.Queued), _key(entry)
            seen[key] += 1
            assert seen[key] == 1, f"{key} twice"


def items_keep_to_their_machine(history: History) -> None:
    """A message runs at most once without a resume; an ended message never runs again."""
    ended, started = set[str](), Counter[str]()
    resumable = set[str]()
    running: dict[str, str] = {}
    unanswered = ""
    for entry in durable_entries(history):
        match entry:
            case e.TurnStarted(turn=turn, item=item):
                ended |= {unanswered} - {""}
                unanswered = ""
                assert item not in ended, f"{item} runs after its end"
                assert item in resumable or not started[item], f"{item} runs twice"
                started[item] += 1
                resumable.discard(item)
                running[turn] = item
            case e.TurnEnded(turn=turn, is_unanswered=True):
                unanswered = running[turn]
            case e.QueueReleased(items=items) if unanswered in items:
                resumable.add(unanswered)
                unanswered = ""
            case e.TurnEnded(turn=turn):
                if turn in running and running[turn] not in resumable:
                    ended.add(running[turn])
            case e.Interrupted(turn=turn):
                resumable.add(running[turn])
            case e.Recovered():
                resumable.update(item for item in running.values() if item not in ended)
            case e.Withdrawn(item=item):
                assert item not in ended
                ended.add(item)
            case e.Steered(items=items):
                assert not ended & set(items)
                ended.update(items)
            case _:
                pass


def _is_cut_off(history: History) -> bool:
    """Whether the program died, or the session's journal broke, and the session was not resumed."""
    has_gone_on = False
    for happening in reversed(history):
        match happening:
            case Crashed() | Passed(fact=m.StoreLost()):
                return True
            case Appended():
                has_gone_on = True
            case Started() if has_gone_on:
                return False
            case _:
                pass
    return False


def _is_let_go(history: History) -> bool:
    """Whether the program let go of the session before it had ended: its parent's journal broke."""
    journal = durable_entries(history)
    is_over = bool(journal) and isinstance(journal[-1], e.SessionSuspended | e.SessionFinalized)
    return isinstance(history[-1], Released) and not is_over


def first_in_first_out(history: History) -> None:
    """One person's messages are taken in as they were said, and plain ones run in that order.

    What interrupts or steers overtakes what waits: it runs, or enters the turn, before it in any case.
    """
    if any(isinstance(happening, Crashed | Failed) for happening in history):
        return
    said = [
        happening.message.said.client_id
        for happening in history
        if isinstance(happening, Uttered)
        and isinstance(happening.message, m.UserMessage)
        and happening.message.type == "normal"
    ]
    journal = durable_entries(history)
    once = {key for key, count in Counter(said).items() if count == 1}  # a refused one comes again
    taken = [
        entry
        for entry in journal
        if isinstance(entry, e.Queued)
        and entry.said.client_id in once
        and entry.routed.said_as not in ("interrupt", "steer")
    ]
    places = [said.index(one.said.client_id) for one in taken]
    assert places == sorted(places), f"accepted as {places}"
    plain = {
        one.item: one.past_hold and holds
        for holds, one in counted(journal)
        if one in taken and one.routed.said_as == "queue" and not one.is_next and not one.for_turn
    }
    moved = {one.item for one in taken if one.position == 1}
    moved |= {
        entry.item
        for entry in journal
        if isinstance(entry, e.Moved | e.SteerAddressed | e.Requeued | e.EditBegun)
    }
    chosen = {
        name for entry in journal if isinstance(entry, e.QueueReleased) for name in entry.items
    } | moved
    ran = [
        entry.item for entry in journal if isinstance(entry, e.TurnStarted) and not entry.resumes
    ]
    for hold in set(plain.values()):  # what was said past a hold is in order with its like
        alike = [item for item in plain if plain[item] == hold]
        order = [alike.index(item) for item in ran if item in alike and item not in chosen]
        assert order == sorted(order), f"ran as {order}"


def counted(journal: list[e.Entry]) -> Iterator[tuple[int, e.Queued]]:
    """Yield each message that was taken in, with how many holds came before it."""
    holds = 0
    for entry in journal:
        holds += isinstance(entry, e.QueueHeld)
        if isinstance(entry, e.Queued):
            yield holds, entry


def what_is_held_stays(history: History) -> None:
    """What waited when the queue was held, by an interrupt or a crash, runs when a person says so.

    Messages of a goal are exempt: a goal is paused and resumed apart from the queue. So are those that a
    person chose to run next, unless a stop of everything or a crash came after that. What is offered does
    not wait before a person keeps it.
    """
    waiting, held, is_held = set[str](), set[str](), False
    of_goals, chosen = set[str](), set[str]()
    for entry in durable_entries(history):
        match entry:
            case e.Queued(goal=goal) if goal:
                of_goals.add(entry.item)
            case e.Requeued(item=item) if item in of_goals:
                pass
            case e.Requeued(item=item, is_offered=True):
                waiting.discard(item)
                held.discard(item)
            case (
                e.Queued(is_next=True)
                | e.Queued(past_hold=True)
                | e.Requeued(past_hold=True)
                | e.Kept(past_hold=True)
            ):
                held.discard(entry.item)
                waiting |= set() if isinstance(entry, e.Queued) and entry.is_next else {entry.item}
            case e.Queued() | e.Requeued() | e.Kept():
                waiting.add(entry.item)
                held |= {entry.item} if is_held else set()
            case e.QueueHeld(only=only) if only:
                is_held = True
                held |= set(only)
            case e.QueueHeld() | e.Recovered():  # recovery holds nothing where nothing waits
                is_held = is_held or bool(waiting) or isinstance(entry, e.QueueHeld)
                chosen = (
                    chosen if isinstance(entry, e.QueueHeld) and not entry.is_all else set[str]()
                )
                held = waiting - chosen
            case e.QueueReleased(items=items):
                is_held, held = False, set[str]()
                chosen |= set(items)
            case e.Steered(items=items):
                waiting -= set(items)
            case e.Withdrawn(item=item):
                waiting.discard(item)
            case e.TurnStarted(item=name):
                assert name not in held, f"{name} was held, and runs"
                waiting.discard(name)
                chosen.discard(name)
            case _:
                pass


def what_is_edited_waits(history: History) -> None:
    """A message that a person edits neither starts nor enters a turn; a dead owner's edits are over."""
    edited = set[str]()
    for entry in durable_entries(history):
        match entry:
            case e.EditBegun(item=item):
                edited.add(item)
            case e.EditEnded(item=item) | e.Edited(item=item) | e.Withdrawn(item=item):
                edited.discard(item)
            case e.Recovered() | e.SessionSuspended():
                edited.clear()
            case e.TurnStarted(item=item):
                assert item not in edited, f"{item} is edited, and runs"
            case e.Steered(items=items):
                assert edited.isdisjoint(items), f"{edited & set(items)} are edited, and taken in"
            case _:
                pass


# Steers: each is delivered, requeued or withdrawn -------------------------------------------------


def steers_enter_a_living_turn(history: History) -> None:
    """A steer enters the conversation between its turn's start and that turn's end."""
    running = ""
    for _, entry, _ in appended(history):
        match entry:
            case e.TurnStarted(turn=turn):
                running = turn
            case e.TurnEnded() | e.Interrupted() | e.Recovered():
                running = ""
            case e.Steered(turn=turn):
                assert turn == running, f"{entry} while {running or 'nothing'} runs"
            case _:
                pass


def steers_are_conserved(history: History) -> None:
    """An accepted steer is taken in, or withdrawn, once; it goes back only as often as it was one."""
    ends, returns, steers = Counter[str](), Counter[str](), Counter[str]()
    started = dict[str, str]()
    for entry in durable_entries(history):
        match entry:
            case e.Queued(item=item) if (
                entry.for_turn or entry.for_children or entry.routed.said_as == "interrupt"
            ):
                steers[item] += 1
            case e.SteerAddressed(item=item):
                steers[item] += 1
            case e.TurnStarted(item=item):
                started[entry.turn] = item
            case e.Interrupted(is_replaced=True):  # comes back if what replaced it is taken back
                steers[started[entry.turn]] += 1
            case e.Steered(items=items):
                ends.update(items)
                assert set(items) <= set(steers), f"{items} were no steers"
            case e.Withdrawn(item=item):
                ends[item] += 1
            case e.Requeued(item=item) if entry.why != NOTHING_RUNS:
                returns[item] += 1
            case _:
                pass
    assert all(count == 1 for count in ends.values()), f"ended more than once: {ends}"
    assert returns <= steers, f"{returns - steers} went back without being steers"


def only_what_was_taken_in_is_handed_back(history: History) -> None:
    """The model hands back a steer of its own turn, at most once; it waits under a new name."""
    taken, made = dict[str, str](), set[str]()
    for entry in durable_entries(history):
        match entry:
            case e.Queued(item=item):
                made.add(item)
            case e.Steered(items=items, turn=turn):
                taken.update(dict.fromkeys(items, turn))
            case e.Deferred():
                assert taken.pop(entry.item, "") == entry.turn, f"{entry} was not taken in there"
                assert entry.new_item not in made, f"{entry} takes another one's name"
                made.add(entry.new_item)
            case _:
                pass


def only_people_withdraw(history: History) -> None:
    """A message is withdrawn by a person who takes it back or clears the queue, and by nothing else."""
    may_withdraw = False
    of_goals = set[str]()
    for happening in history:
        match happening:
            case Appended(seq=_, entry=e.Queued(item=item, goal=goal)) if goal:
                of_goals.add(item)
            case Appended(seq=_, entry=e.Withdrawn(item=item)) if item in of_goals:
                pass
            case Uttered(message=m.QueueChange(op="withdraw" | "clear")):
                may_withdraw = True
            case Appended(seq=_, entry=e.Withdrawn()):
                assert may_withdraw, f"{happening} without a request for it"
            case _:
                pass


# Turns: one at a time, and none goes on after its interrupt ---------------------------------------


def one_turn_at_a_time(history: History) -> None:
    """A turn starts only when the one before it has ended and what it started is dead."""
    running = ""
    for happening in history:
        match happening:
            case Appended(seq=_, entry=e.TurnStarted(turn=turn)):
                assert not running, f"{turn} starts while {running} runs"
                running = turn
            case Appended(seq=_, entry=e.TurnEnded(turn=turn) | e.Stopped(turn=turn)) if turn:
                assert turn == running, f"{turn} ends, {running} runs"
                running = ""
            case Started() | Appended(seq=_, entry=e.Recovered()):
                running = ""
            case _:
                pass


def no_step_after_an_interrupt(history: History) -> None:
    """After the interrupt of a turn is journalled nothing of that turn is decided or performed."""
    ended = set[str]()
    for happening in history:
        match happening:
            case Started():
                ended.clear()
            case Appended(seq=_, entry=e.InterruptRequested(turn=turn)) if turn:
                assert turn not in ended, f"{turn} was interrupted twice"
                ended.add(turn)
            case Appended(seq=_, entry=e.ModelCalled(turn=turn) | e.ToolIntended(turn=turn)):
                assert turn not in ended, f"{turn} goes on after its interrupt: {happening}"
            case Performed(effect=m.CallModel(turn=turn) | m.RunTool(turn=turn)):
                assert turn not in ended, f"{turn} acts after its interrupt: {happening}"
            case _:
                pass


def a_cancelled_turn_leaves_nothing_running(history: History) -> None:
    """An interrupt cancels the model call and stops each tool that was begun and has not ended."""
    models, tools, told = set[str](), dict[str, str](), set[str]()
    work = dict[tuple[str, int], str]()
    for happening in history:
        match happening:
            case Appended(seq=_, entry=e.ItemStarted(step=step, index=index, call=call)):
                work[step, index] = call
            case Appended(seq=_, entry=e.ItemEnded(step=step, index=index)):
                tools.pop(work.get((step, index), ""), None)
            case Performed(effect=m.CallModel(turn=turn)):
                models.add(turn)
            case Performed(effect=m.RunTool(turn=turn, call=call)):
                tools[call] = turn
            case Performed(effect=m.CancelModel(turn=turn)):
                models.discard(turn)
            case Performed(effect=m.StopTool(call=call)):
                told.add(call)
            case Appended(
                seq=_,
                entry=e.Answered(turn=turn)
                | e.ModelCallFailed(turn=turn)
                | e.ModelAwaited(turn=turn)
                | e.Compacted(turn=turn),
            ):
                models.discard(turn)
            case Appended(seq=_, entry=e.ToolEnded(call=call)):
                tools.pop(call, None)
            case Appended(seq=_, entry=e.Interrupted(turn=turn)):
                assert turn not in models, f"{turn}'s model call goes on"
                mine = {call for call, owner in tools.items() if owner == turn}
                assert mine <= told, f"{mine - told} were not told to stop"
            case Crashed() | Failed():
                models.clear()
                tools.clear()
            case _:
                pass


def a_turn_that_waits_for_its_provider_asks_nothing(history: History) -> None:
    """The model is not called between the wait for a provider and its end."""
    waiting = set[str]()
    for _, entry, _ in appended(history):
        match entry:
            case e.TurnStarted(turn=turn):
                waiting.discard(turn)  # an earlier one of the name was lost in a crash
            case e.ModelAwaited(turn=turn):
                waiting.add(turn)
            case e.ModelAskedAgain(turn=turn):
                waiting.remove(turn)
            case e.ModelCalled(turn=turn) | e.Answered(turn=turn):
                assert turn not in waiting, f"{turn} goes on while it waits: {entry}"
            case e.TurnEnded() | e.Interrupted() | e.Recovered():
                waiting.clear()
            case _:
                pass


def no_tool_outlives_its_turn(history: History) -> None:
    """When `stopped` or the end of a turn is journalled, each of its intents has its result."""
    for _, entry, before in appended(history):
        if isinstance(entry, e.Stopped) or (
            isinstance(entry, e.TurnEnded) and "fault in the program" not in entry.reason
        ):
            intended = {one.call for one in before if isinstance(one, e.ToolIntended)}
            over = {one.call for one in before if isinstance(one, e.ToolEnded)}
            mine = {call for call in intended - over if call.startswith(f"{entry.turn}.")}
            lost = any(isinstance(one, e.Recovered) for one in before)
            assert not mine or lost, f"{mine} run after {entry}"


def what_changes_files_runs_alone(history: History, is_mutating: Callable[[str], bool]) -> None:
    """A call that may change files runs alone; those that only look run side by side."""
    running: dict[str, str] = {}
    for _, entry, _ in appended(history):
        match entry:
            case e.ToolIntended(call=call, tool=tool):
                running[call] = tool
                is_alone = len(running) == 1 or not any(map(is_mutating, running.values()))
                assert is_alone, f"at once: {', '.join(running.values())}"
            case e.ToolEnded(call=call) | e.ToolRefused(call=call):
                running.pop(call, None)
            case e.TurnStarted() | e.Recovered():
                running.clear()
            case _:
                pass


def what_is_held_begins_by_a_persons_word(history: History) -> None:
    """A call of a tool that is held begins when a person has let it, with that person's arguments."""
    holds: tuple[tuple[str, str], ...] = ()
    asked: dict[str, e.QuestionAsked] = {}
    let: dict[str, str] = {}
    reported = set[str]()  # by an agent that is another program, which asks as it likes
    for entry in durable_entries(history):
        match entry:
            case e.PolicyChanged(holds=chosen) if chosen is not None:
                holds = chosen
            case e.CallReported(call=call):
                reported.add(call)
            case e.QuestionAsked():
                asked[entry.question] = entry
            case e.QuestionAnswered(question=question, choice=choice) if question in asked:
                let[asked[question].call] = choice
            case e.ToolIntended(call=call, tool=tool) if call not in reported:
                is_held = any(tool == held for held, _ in holds)
                word = let.get(call, "")
                assert not is_held or word in ("allow", "always", "change"), f"{call} was held"
                assert entry.is_changed == (word == "change"), f"{call} runs as nobody said"
            case _:
                pass


def planned_cancels_end_the_turn(history: History) -> None:
    """After a cancel that waits for a tool the turn begins nothing more."""
    planned = set[str]()
    for happening in history:
        match happening:
            case Appended(seq=_, entry=e.InterruptPlanned(turn=turn)):
                planned.add(turn)
            case Appended(seq=_, entry=e.InterruptCalledOff(turn=turn)):
                planned.discard(turn)
            case Appended(seq=_, entry=e.ModelCalled(turn=turn) | e.ToolIntended(turn=turn)):
                assert turn not in planned, f"{happening} though {turn} is to stop"
            case Appended(seq=_, entry=e.TurnEnded(turn=turn, status="completed")):
                assert turn not in planned, f"{turn} is complete though it was to stop"
            case Started():
                planned.clear()
            case _:
                pass


def what_is_called_off_stops_nothing(history: History) -> None:
    """A planned cancel is taken back once at most, and then ends no turn."""
    planned, off = set[str](), set[str]()
    for _, entry, _ in appended(history):
        match entry:
            case e.InterruptPlanned(receipt=receipt):
                planned.add(receipt)
            case e.InterruptCalledOff(receipt=receipt):
                assert receipt in planned, f"{receipt} was called off, and was not planned"
                planned.discard(receipt)
                off.add(receipt)
            case e.InterruptRequested(receipt=receipt):
                assert receipt not in off, f"{receipt} takes effect though it was called off"
            case _:
                pass


def cancels_have_a_cause(history: History) -> None:
    """No turn ends by cancel without an order to."""
    requested = set[str]()
    for entry in durable_entries(history):
        if isinstance(entry, e.InterruptRequested):
            requested.add(entry.turn)
        elif isinstance(entry, e.Interrupted):
            assert entry.turn in requested
            assert entry.cause


# The conversation: what the model is shown --------------------------------------------------------


def conversation_is_well_formed(history: History) -> None:
    """User and assistant alternate, and each tool call has one result before the next of them."""
    said: Log[ChatMessage] = Log()
    for entry in durable_entries(history):
        said = grown(said, entry, messages_of(entry))
    due: list[str] = []
    last: ChatMessage | None = None
    for message in said:
        if message.role == "tool":
            assert message.call in due, f"a second result, or an unsolicited one: {message}"
            due.remove(message.call)
            last = message
            continue
        assert not due, f"{message} comes before the results of {due}"
        is_same = last is not None and last.role == message.role
        assert not is_same, f"two of {message.role} in a row: {last}, {message}"
        due = [call.call for call in message.tool_calls]
        last = message
    is_cut_off = _is_cut_off(history) or _is_let_go(history)
    assert not due or is_cut_off, f"no results of {due}"


def model_sees_the_conversation(history: History) -> None:
    """What a model call is given is the journalled conversation: nothing rewritten, nothing left out."""
    for at, one in enumerate(history):
        match one:
            case Performed(effect=m.CallModel(is_summary=False, messages=messages)):
                said: Log[ChatMessage] = Log()
                for entry in durable_entries(history[:at]):
                    said = grown(said, entry, messages_of(entry))
                assert tuple(said) == messages
                return  # one a run: it costs
            case _:
                pass


# Starts, ends and reverts -------------------------------------------------------------------------


class ProviderWait:
    """The turn that waits for its provider: after a crash the session goes on with it by itself."""

    def __init__(self) -> None:
        self._turns: list[tuple[int, str]] = []  # entries, and the turn that waits from there on

    def ends_with(self, happening: Happening) -> bool:
        """Take what happens; whether it lets the session go on for that reason after a crash."""
        match happening:
            case Started(seq=seq):  # what was not durable has not happened
                self._turns = [known for known in self._turns if known[0] <= seq]
            case Appended(seq=_, entry=e.QueueReleased()):
                return bool(self._turns and self._turns[-1][1])
            case Appended(seq=seq, entry=e.ModelAwaited(turn=turn)):
                self._turns.append((seq, turn))
            case Appended(seq=seq, entry=e.ModelAskedAgain() | e.TurnEnded() | e.Interrupted()):
                self._turns.append((seq, ""))
            case _:
                pass
        return False


def nothing_runs_before_a_person_says_so(history: History) -> None:
    """After a restart no model is asked and no tool starts until a person's message.

    Nor is a judge asked, nor does a gate run. A turn that waited for its provider goes on when its time
    has come: a person has set that.
    """
    may_run, wait = True, ProviderWait()
    for happening in history:
        if wait.ends_with(happening):
            may_run = True
        match happening:
            case Crashed():
                may_run = False
            case Failed(kept=kept):
                may_run = any(isinstance(message, WORDS) for message in kept)
            case Uttered(
                message=m.UserMessage()
                | m.ResumeQueue()
                | m.QueueChange(op="release" | "keep" | "steer")
                | m.TakeBack()
                | m.Compact()
                | m.SetGoal()
                | m.ChangeGoal(op="resume")
                | m.TryAgain()
            ):
                may_run = True
            case (
                Performed(effect=m.CallModel() | m.RunTool() | m.AskJudge() | m.RunGate())
                | Appended(seq=_, entry=e.TurnStarted())
            ):
                assert may_run, f"{happening} after a restart"
            case _:
                pass


def finalize_is_the_end(history: History) -> None:
    """A session is finalized once, and nothing is journalled after it."""
    journal = durable_entries(history)
    places = [place for place, one in enumerate(journal) if isinstance(one, e.SessionFinalized)]
    assert len(places) <= 1
    assert not places or places[0] == len(journal) - 1, journal[places[0] + 1]


def nothing_runs_while_files_are_given_back(history: History) -> None:
    """A revert begins when no tool runs, and until its end no tool and no model call begins."""
    tools, restoring = set[str](), ""
    for happening in history:
        match happening:
            case Started() | Crashed() | Failed():
                tools.clear()
                restoring = ""
            case Performed(effect=m.RunTool(call=call)):
                assert not restoring, f"{call} runs while {restoring} gives files back"
                tools.add(call)
            case Performed(effect=m.CallModel(turn=turn)):
                assert not restoring, f"{turn} goes on while {restoring} gives files back"
            case Appended(seq=_, entry=e.ToolEnded(call=call)):
                tools.discard(call)
            case Appended(seq=_, entry=e.TurnEnded()):
                tools.clear()  # of a turn whose actor failed; the ports wait for them
            case Performed(effect=m.RestoreFiles(id=name, is_dry_run=False)):
                assert not tools, f"{name} gives files back while {tools} run"
                restoring = name
            case Appended(seq=_, entry=e.Reverted() | e.RevertRefused()):
                restoring = ""
            case _:
                pass


# The whole history --------------------------------------------------------------------------------

HISTORY = (
    sequence_is_dense,
    nothing_is_told_before_it_is_durable,
    known_is_said_of_durable_items,
    effects_follow_durable_entries,
    calls_are_performed_once,
    a_model_is_heard_when_its_turn_is_durable,
    every_message_is_answered,
    no_message_is_lost,
    one_client_id_one_run,
    items_keep_to_their_machine,
    first_in_first_out,
    what_is_held_stays,
    what_is_edited_waits,
    steers_enter_a_living_turn,
    steers_are_conserved,
    only_what_was_taken_in_is_handed_back,
    only_people_withdraw,
    one_turn_at_a_time,
    no_step_after_an_interrupt,
    a_cancelled_turn_leaves_nothing_running,
    no_tool_outlives_its_turn,
    what_is_held_begins_by_a_persons_word,
    a_turn_that_waits_for_its_provider_asks_nothing,
    planned_cancels_end_the_turn,
    what_is_called_off_stops_nothing,
    cancels_have_a_cause,
    conversation_is_well_formed,
    model_sees_the_conversation,
    nothing_runs_before_a_person_says_so,
    finalize_is_the_end,
    nothing_runs_while_files_are_given_back,
)
OF_PEOPLE = (
    nothing_runs_before_a_person_says_so,
    only_people_withdraw,
    first_in_first_out,
    what_is_held_stays,
    what_is_edited_waits,
    every_message_is_answered,
)


OF_MODELS = (conversation_is_well_formed,)
"""What is promised of a conversation that a model sees; none sees that of a workflow's run."""


def check_history(history: History, is_child: bool = False, is_run: bool = False) -> None:
    """Every promise that can be read off what happened; to a child no person speaks."""
    for check in HISTORY:
        if not (is_child and check in OF_PEOPLE) and not (is_run and check in OF_MODELS):
            check(history)


# At the end ---------------------------------------------------------------------------------------


def check_liveness(program: SimulatedProgram) -> None:
    """With nothing left to happen nothing is half done, and only what is held waits."""
    record = program.record
    assert record.state in ("idle", "suspended", "finalized"), f"stuck: {record.state}"
    assert record.running is None
    assert not program.ports.tools, f"tools run: {list(program.ports.tools)}"
    assert program.actor("turn") is None, "a turn's actor is left"
    if record.state == "idle":
        assert not [revert for revert in record.reverts.values() if revert.is_open], (
            "files wait for nothing"
        )
        assert not record.queue.stranded(), "a steer waits for nothing"
        assert record.queue.next_item() is None, f"{record.queue.next_item()} waits for nothing"
    kept = (*record.queue.order, *aside(record.queue))
    for item in record.queue.items.values():
        assert item.state in ITEM.final or item.id in kept
    _require_orders_obeyed(program)


def _require_orders_obeyed(program: SimulatedProgram) -> None:
    """A session that got an end has ended, unless it died first."""
    last_start = max(at for at, one in enumerate(program.history) if isinstance(one, Started))
    for one in program.history[last_start:]:
        if isinstance(one, Uttered) and isinstance(one.message, m.Finalize):
            assert program.record.state == "finalized"


def check_stops_are_prompt(program: SimulatedProgram, chances: Chances) -> None:
    """A stop is over when its processes are dead; time counts while no other actor has work to do.

    A tool takes `longest` to die, each level of children a quarter of that to be opened or closed, and a
    judge or a gate as long as it takes them. A child that stops at its boundary lets its tools end.
    """
    patient = [
        (session, happening.idle)
        for session, history in program.chronicle.of.items()
        for happening in history
        if isinstance(happening, Appended) and isinstance(happening.entry, e.InterruptPlanned)
    ]
    for session, history in program.chronicle.of.items():
        below = [name.count("-") for name in program.chronicle.of if name.startswith(session)]
        levels = max(1, max(below) - session.count("-"))  # each is opened and closed in its turn
        longest = (1 + levels / 2) * chances.longest + chances.verdicts.longest
        since = dict[str, float]()
        for happening in history:
            match happening:
                case Started():
                    since.clear()
                case Appended(seq=_, entry=e.InterruptRequested(turn=turn)):
                    since[turn] = happening.idle
                case Appended(seq=_, entry=e.Stopped(turn=turn)) if turn in since:
                    begun, end = since.pop(turn), happening.idle
                    is_patient = any(
                        child.startswith(f"{session}-") and begun <= idle <= end
                        for child, idle in patient
                    )
                    assert is_patient or end - begun <= longest, (
                        f"{session}: {turn or 'all'} stopped after {end - begun} s"
                    )
                case _:
                    pass


# Replay -------------------------------------------------------------------------------------------


def check_replay(program: SimulatedProgram) -> None:
    """The journal alone gives the living record; so does its newest snapshot with the tail."""
    living = program.record
    if not living.seq:  # no entry of it was ever durable: the disk was full from the beginning
        assert not list(program.store.entries(ROOT))
        return
    assert fold(program.store, ROOT, SessionRecord(), living.seq) == living
    assert load_record(program.store, ROOT) == living
