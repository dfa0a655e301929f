"""Twenty people talk in rooms, while connections break and gateway and server are killed.

Each message has a label, which the model repeats in its answer. So the journals show which messages were
decided, how often and in which order, and the rooms which answers came.
"""

import itertools
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from pathlib import Path
from subprocess import Popen

from soak.crowds import CROWDS, PEOPLE, Crowd
from support.driver import Place, end
from support.model_server import ModelServer, Recorded, Text
from support.patience import seconds
from support.until import until

from steersman.journal import entries as e
from steersman.journal.codec import decode_entry
from steersman.journal.sqlite import SqliteStore

__all__ = ["DISRUPTIONS", "Chats", "faults_of"]

LABEL = re.compile(r"p\d\d-r\d\d-\d{4}")
UNSURE = "My last message may not have arrived"
_GAP = re.compile(r"what was said here since (\d\d:\d\d:\d\d) UTC")
_BACKLOG = 60
"""Messages that wait for their answers; then the people wait, too."""
_PACE = 0.02  # seconds between two messages of people
_SETTINGS = "[auto_queue]\nmax_queue_size = 1000\nshow_queue_on_input = false\n"
DISRUPTIONS = ("cut", "kill", "restart", "kill while away")


class Chats:
    """A crowd, the installed gateway, and a model that repeats the label of what it was asked."""

    def __init__(self, platform: str, folder: Path, seed: int) -> None:
        self._platform = platform
        self._random = random.Random(seed)
        self._ending = ExitStack()
        (folder / "server").mkdir(parents=True)
        self.crowd: Crowd = self._ending.enter_context(closing(CROWDS[platform](folder / "server")))
        model = self._ending.enter_context(ModelServer(repeat))
        self._place = self._ending.enter_context(closing(Place(folder)))
        self._place.configure(model.base_url, rest=_SETTINGS + self.crowd.config)
        self._place.environ |= self.crowd.environ
        self._log = folder / "gateway.log"
        self._gateway: Popen[str] | None = None
        self._ending.callback(self.kill)
        self._count = itertools.count()
        self._disruptions = 0
        self.said: dict[str, float] = {}
        """The labels in the order in which they were said, and when, in seconds since 1970."""
        self.again = set[str]()
        """Those that were lost while the gateway was away, and said again."""

    def close(self) -> None:
        """End everything."""
        self._ending.close()

    # What happens -------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the gateway."""
        with self._log.open("a") as log:
            self._gateway = self._place.start(
                "gateway", "run", self._platform, stdout=log, stderr=log
            )

    def kill(self) -> None:
        """Kill the gateway. Idempotent."""
        if self._gateway is not None:
            end(self._gateway.pid)
            self._gateway.communicate()
            self._gateway = None

    def is_alive(self) -> bool:
        """Whether the gateway runs; it never ends without a signal."""
        return self._gateway is not None and self._gateway.poll() is None

    def say(self, count: int) -> None:
        """Have a person say something in some room, so often."""
        for _ in range(count):
            self._note(self._random.randrange(len(self.crowd.rooms)))
            threading.Event().wait(_PACE)

    def _note(self, room: int, sender: int | None = None) -> str:
        """Have a person, the next one if none is named, say something new; return its label."""
        number = next(self._count)
        who = number % len(PEOPLE) if sender is None else sender
        label = f"{PEOPLE[who]}-r{room:02}-{number:04}"
        self.said[label] = time.time()
        self.crowd.say(who, room, f"note {label}")
        return label

    def disrupt(self, way: str, meanwhile: int) -> None:
        """Break something; people say so much while the gateway is killed."""
        match way:
            case "cut":
                self.crowd.tunnel.cut()
            case "kill":
                self.kill()
                self.say(meanwhile)
                self.start()
            case "restart":
                self.crowd.restart(lambda: None)
            case _:
                self.crowd.restart(self.kill)
                self.start()

    def settle(self, patience: float = 120.0) -> None:
        """Wait until everything that was decided is answered, or its answer is uncertain."""

        def is_answered() -> bool:
            assert self.is_alive(), self._log.read_text()[-2_000:]
            decided = self.decided()
            return all(
                len(decided[room] - found) <= unsure
                for room, (found, unsure) in enumerate(map(_answers, self._all_texts()))
            )

        until(is_answered, f"answers on {self._platform}", quiet=patience)

    def wait_backlog(self) -> None:
        """Wait until not too many messages wait for their answers."""

        def is_short() -> bool:
            assert self.is_alive(), self._log.read_text()[-2_000:]
            found = [_answers(texts) for texts in self._all_texts()]
            heard = sum(map(len, self.decided())) if self.crowd.gaps else len(self.said)
            return heard - sum(len(labels) + unsure for labels, unsure in found) < _BACKLOG

        until(is_short, f"answers on {self._platform}", quiet=240.0)

    # What came of it ----------------------------------------------------------------------------------

    def _all_texts(self) -> list[list[str]]:
        return [self.crowd.texts(room) for room in range(len(self.crowd.rooms))]

    def decided(self) -> list[set[str]]:
        """Return the labels of each room that are in the journals."""
        found: list[set[str]] = [set() for _ in self.crowd.rooms]
        for label in itertools.chain.from_iterable(self.journals()):
            found[int(label[5:7])].add(label)
        return found

    def journals(self) -> list[list[str]]:
        """Return the labels of the messages of each session, in their order."""
        with closing(SqliteStore.open(self._place.home / "state", read_only=True)) as store:
            sessions = [row.session for row in store.sessions()]
            return [_labels(store, session) for session in sessions]

    def lost(self) -> list[str]:
        """Return the labels that no journal has."""
        known = set[str]().union(*self.decided())
        return [label for label in self.said if label not in known]

    def _wait_behind(self, labels: list[str]) -> None:
        """Wait until what was under way has come: their senders say more there, and that is decided."""
        more = {self._note(int(label[5:7]), PEOPLE.index(label[:3])) for label in labels}
        until(lambda: not more & {*self.lost()}, f"what is said last on {self._platform}")
        self.settle()

    def say_again(self, labels: list[str]) -> None:
        """Have people say once more what was not heard."""
        for label in labels:
            self.again.add(label)
            self.crowd.say(PEOPLE.index(label[:3]), int(label[5:7]), f"note {label}")

    def ask_again(self) -> None:
        """Have everything said once more of which it is uncertain whether it arrived."""
        for room, texts in enumerate(self._all_texts()):
            if any(UNSURE in text for text in texts):
                self.crowd.say(0, room, "!again")

    def unheard(self, labels: list[str]) -> list[str]:
        """Return those of which no room learned that the gateway was away.

        A busy gateway reads later what came before: it knows only when it read the last line.
        """
        gaps = [_gaps(texts) for texts in self._all_texts()]
        return [
            label
            for label in labels
            if not any(since <= self.said[label] + seconds(1) for since in gaps[int(label[5:7])])
        ]

    @property
    def figures(self) -> dict[str, float]:
        """What was broken, and what that cost."""
        unsure = sum(_answers(texts)[1] for texts in self._all_texts())
        return {"disruptions": self._disruptions, "lost, told and said again": len(self.again)} | {
            "uncertain, and said again when asked": unsure
        }

    def play(
        self, count: int, is_over: Callable[[], bool] = lambda: False
    ) -> Iterator[tuple[int, list[str]]]:
        """Have so many messages said, and give what was wrong at the end of each part.

        No further part begins when the time is over.
        """
        self.start()
        until(self.crowd.is_joined, f"the gateway enters the rooms of {self._platform}")
        ways = itertools.cycle(DISRUPTIONS)
        part = min(50, max(5, count // 4))
        for begun in range(0, count, part):
            size = min(part, count - begun)
            after = min(size, 2)
            way = next(ways)
            meanwhile = 2 if way == "kill" and size > 4 else 0
            self.say(size - after - meanwhile)
            self.disrupt(way, meanwhile)
            self._disruptions += 1
            self.say(after)
            until(self.crowd.is_joined, "the gateway comes back")
            self.wait_backlog()
            yield size, []
            if is_over():
                break
        yield 0, self.judge()

    def judge(self) -> list[str]:
        """Wait for the end of all, and return what was wrong."""
        wrong: list[str] = []
        if not self.crowd.gaps:
            until(
                lambda: not self.lost(),
                lambda: f"decisions on {self._platform}: {self.lost()[:3]}",
                quiet=120.0,
            )
        self.settle()
        self._wait_behind(self.lost())
        if lost := self.lost():
            wrong += [f"{label}: lost, and the room does not know" for label in self.unheard(lost)]
            self.say_again(lost)
            until(lambda: not self.lost(), f"what was said again on {self._platform}")
            self.settle()
        before = self._all_texts()
        self.ask_again()
        until(self._has_all, f"`!again` on {self._platform}", quiet=120.0)
        return wrong + faults_of(self.journals(), before, self._all_texts(), self.again)

    def _has_all(self) -> bool:
        return all(
            not decided - _answers(texts)[0]
            for decided, texts in zip(self.decided(), self._all_texts(), strict=True)
        )


def repeat(request: Recorded) -> Text:
    """Answer with the newest label that a person said."""
    said = [str(message) for message in request.body["messages"] if message["role"] == "user"]
    return Text(f"Heard {LABEL.findall(' '.join(said))[-1]}.")


def faults_of(
    journals: list[list[str]], before: list[list[str]], after: list[list[str]], again: set[str]
) -> list[str]:
    """Say what was decided twice or out of order, and answered twice without being asked to.

    `before` and `after` are the texts of the rooms before and after `!again`, `again` the labels that
    people said a second time.
    """
    wrong: list[str] = []
    for labels in journals:
        wrong += [f"{label}: decided {n} times" for label, n in Counter(labels).items() if n > 1]
        by_sender: dict[str, list[str]] = {}
        for label in labels:
            if label not in again:
                by_sender.setdefault(label[:3], []).append(label)
        wrong += [
            f"{who}: out of order: {found}"
            for who, found in by_sender.items()
            if found != sorted(found)
        ]
    for first, texts in zip(before, after, strict=True):
        twice = [label for label, n in _counted(first).items() if n > 1]
        wrong += [f"{label}: answered twice" for label in twice]
        more = [label for label, n in _counted(texts).items() if n > 1 and label not in twice]
        if len(more) > sum(UNSURE in text for text in first):
            wrong.append(f"said once more, and not uncertain: {more}")
    return wrong


def _labels(store: SqliteStore, session: str) -> list[str]:
    entries = (decode_entry(stored.data) for stored in store.entries(session))
    queued = [entry.said.text for entry in entries if isinstance(entry, e.Queued)]
    return [found[0] for text in queued if (found := LABEL.search(text))]


def _counted(texts: list[str]) -> Counter[str]:
    return Counter(label for text in texts if "Heard" in text for label in LABEL.findall(text))


def _answers(texts: list[str]) -> tuple[set[str], int]:
    """Return the labels that were answered, and how many messages are uncertain."""
    return set(_counted(texts)), sum(UNSURE in text for text in texts)


def _gaps(texts: list[str]) -> list[float]:
    """Return since when the gateway was away, each in seconds since 1970; of this day."""
    today = datetime.now(UTC).date()
    times = [found[1] for text in texts if (found := _GAP.search(text))]
    return [
        datetime.combine(today, datetime.strptime(time, "%H:%M:%S").time(), UTC).timestamp()
        for time in times
    ]
