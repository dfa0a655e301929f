"""What `steersman serve` costs: many sessions and streams, a power cut, and sessions that only wait.

Run it as `python benchmarks/serving.py`, with the package installed. The program is the real one; its
model is a script that says 200 words a second. Rows with a limit are ratios to a baseline of the same
run, or counts of what is lost or doubled; the others depend on the machine.

`python benchmarks/serving.py --minutes 10` is a load run instead: 50 sessions, each of which is told
something every few seconds, 20 of them followed by a program and on a page in a real Chromium, and every
minute the power is cut.
"""

import http.client
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from table import head, row

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.driver import Place
from support.served import Follower, Served
from web.browser import Browser, Driver
from web.conftest import code_for
from web.test_load import script

SESSIONS, STREAMS, SECONDS = 50, 20, 10.0
IDLE = 1_000
EVERY = 5.0
"""Seconds after which a session of the load run is told something again."""
WINDOWS = 5
"""Pages of one browser: it keeps at most six connections to a host."""
TICK = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


@contextmanager
def scene(words: int) -> Generator[Place]:
    """A place whose model says so many words."""
    with tempfile.TemporaryDirectory() as name:
        place = Place(Path(name) / "root")
        script(place, words)
        try:
            yield place
        finally:
            place.close()


def start(place: Place, *options: str, token: str = "") -> Served:
    """Serve the place."""
    web = Served(place, *options)
    web.token = token or web.pair()
    return web


def spent(web: Served) -> float:
    """Return the seconds of processor time that the server has used."""
    fields = Path(f"/proc/{web.program.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def memory(web: Served) -> float:
    """Return the MiB that the server has in memory."""
    return int(Path(f"/proc/{web.program.pid}/statm").read_text().split()[1]) * PAGE / (1 << 20)


def say(web: Served, session: str, text: str) -> bool:
    """Send a message; whether it was acknowledged."""
    try:
        body = {"text": text, "as": "queue"}
        return web.ask("POST", f"sessions/{session}/messages", body).status == 202
    except OSError:
        return False


def delays(web: Served, follower: Follower, number: int) -> list[float]:
    """Return seconds from sending a message to seeing it in a stream, for each of some messages."""
    found = list[float]()
    for count in range(number):
        text = f"measured {count} {time.monotonic()}"
        begun = time.monotonic()
        if say(web, follower.session, text):
            while text not in follower.times and time.monotonic() < begun + 30:
                time.sleep(0.0005)
            found.append(follower.times.get(text, begun + 30) - begun)
        time.sleep(SECONDS / number / 2)
    return found


def share(web: Served, seconds: float) -> float:
    """Return how much of one processor the server uses for so long."""
    before, begun = spent(web), time.monotonic()
    time.sleep(seconds)
    return (spent(web) - before) / (time.monotonic() - begun)


def show_delays(found: list[float], limit: float = 0.0) -> float:
    """Print the median and the slowest of a hundred; return the median."""
    found = sorted(found)
    median, slow = statistics.median(found), found[min(len(found) - 1, int(len(found) * 0.99))]
    row("  from a message to its event elsewhere, median", 1000 * median, unit="ms")
    row("  the same, slowest of a hundred", 1000 * slow, unit="ms")
    if limit:
        row("  median, times that of one session", median / limit, "<= 30", ok=median / limit <= 30)
    return median


def busy_and_cut() -> None:
    """One session, then many with streams; in the midst of them the power is cut."""
    with scene(words=int(200 * SECONDS * 3)) as place:
        web = start(place)
        port = web.address.rpartition(":")[2]
        sessions = [web.begin() for _ in range(SESSIONS + 1)]
        quiet, *busy = sessions
        listener = Follower(web.address, web.token, quiet)
        head("nothing runs")
        idle = share(web, SECONDS / 4)
        row("  share of a processor", idle)
        alone = show_delays(delays(web, listener, 20))
        say(web, quiet, "talk")
        one = share(web, SECONDS / 4)
        row("  with one session that runs", one)

        head(f"{SESSIONS} sessions at 200 words a second, {STREAMS} streams")
        followers = [Follower(web.address, web.token, one) for one in busy[:STREAMS]]
        sent = {session: ["begin"] for session in busy if say(web, session, "begin")}
        many = share(web, SECONDS / 2)
        row("  share of a processor", many)
        extra, most = (many - idle) / SESSIONS, 1.5 * max(one - idle, 0.01)
        row("  for each, times that of one alone", extra / most * 1.5, "<= 1.5", ok=extra <= most)
        pieces = sum(follower.pieces for follower in followers)
        row("  pieces a second in each stream", pieces / STREAMS / (SECONDS / 2))
        show_delays(delays(web, followers[0], 60), alone)

        head("a power cut while messages are sent")
        is_over = threading.Event()

        def send() -> None:
            number = 0
            while not is_over.is_set():
                for session, texts in sent.items():
                    number += 1
                    if say(web, session, f"number {number}"):
                        texts.append(f"number {number}")

        sender = threading.Thread(target=send)
        sender.start()
        time.sleep(1)
        web.kill()
        is_over.set()
        sender.join()
        web = start(place, "--port", port, token=web.token)
        lost = doubled = told_wrong = 0
        for session, texts in sent.items():
            accepted = [
                event.get("text") for event in web.page(session) if event["type"] == "accepted"
            ]
            lost += sum(accepted.count(text) == 0 for text in texts)
            doubled += sum(accepted.count(text) > 1 for text in texts)
        for follower in followers:
            journal = [(event["seq"], event["type"]) for event in web.page(follower.session)]
            newest = journal[-1][0]
            seen = follower.numbered
            follower.wait(lambda seen=seen, newest=newest: bool(seen) and seen[-1]["seq"] >= newest)
            told_wrong += [(event["seq"], event["type"]) for event in seen] != journal
        count = sum(len(texts) for texts in sent.values())
        row(f"  of {count} acknowledged messages lost", lost, "0", ok=not lost)
        row("  doubled", doubled, "0", ok=not doubled)
        row(f"  of {STREAMS} streams with a gap or a double", told_wrong, "0", ok=not told_wrong)
        for follower in (listener, *followers):
            follower.stop()
        web.close()


def waiting(number: int) -> None:
    """Sessions that were begun and do nothing."""
    with scene(words=1) as place:
        web = start(place)
        web.begin()
        before, begun = memory(web), time.monotonic()
        for _ in range(number // 10):
            web.begin()
        tenth = (memory(web) - before) / (number // 10)
        for _ in range(number - number // 10):
            web.begin()
        each = (memory(web) - before) / number
        head(f"{number} sessions that wait")
        row("  begun in a second", number / (time.monotonic() - begun))
        row("  memory of each", 1024 * each, unit="KiB")
        row("  times that of the first tenth", each / tenth, "<= 1.5", ok=each <= 1.5 * tenth)
        row("  threads", len(os.listdir(f"/proc/{web.program.pid}/task")))
        row("  descriptors", len(os.listdir(f"/proc/{web.program.pid}/fd")))
        row("  share of a processor", share(web, 3))
        begun = time.monotonic()
        web.ask("GET", "sessions")
        row("  to list them", 1000 * (time.monotonic() - begun), unit="ms")
        begun = time.monotonic()
        web.close()
        row("  to suspend them", time.monotonic() - begun, unit="s")


class Talk(threading.Thread):
    """Says something to one session after another until it is told to stop; `sent` is what was taken.

    What was not acknowledged is said again with the same key, as clients do.
    """

    def __init__(self, web: Served, sessions: list[str]) -> None:
        super().__init__(name="talk", daemon=True)
        self.web = web
        self.sent: dict[str, list[str]] = {session: [] for session in sessions}
        self.is_over = threading.Event()

    def run(self) -> None:
        """Send."""
        number = 0
        while not self.is_over.is_set():
            number += 1
            for session in self.sent:
                self._send(session, f"number {number}")
                if self.is_over.wait(EVERY / SESSIONS):
                    return

    def _send(self, session: str, text: str) -> None:
        body, key = {"text": text, "as": "queue"}, {"Idempotency-Key": text}
        while not self.is_over.is_set():
            try:
                answer = self.web.ask("POST", f"sessions/{session}/messages", body, key)
            except (OSError, http.client.HTTPException):  # it is dead, and comes back
                self.is_over.wait(0.2)
                continue
            if answer.status == 202 or answer.data.get("receipt", {}).get("type") == "accepted":
                self.sent[session].append(text)
                return
            self.is_over.wait(0.2)  # the queue is full


def waiting_in(web: Served, session: str) -> list[dict[str, object]]:
    """Return the messages of a session that have not run."""
    items: list[dict[str, object]] = web.ask("GET", f"sessions/{session}/queue").data["items"]
    return items


def pages_on(driver: Driver, web: Served, sessions: list[str]) -> list[tuple[Browser, str, str]]:
    """Open a page on each session, some in a window each of one browser; return how to reach them."""
    found: list[tuple[Browser, str, str]] = []
    for first in range(0, len(sessions), WINDOWS):
        browser = Browser(driver)
        browser.go(f"http://{web.address}/#pair={code_for(web.place, f'browser {first}')}")
        browser.wait("document.querySelector('.sessions')")
        for session in sessions[first : first + WINDOWS]:
            opened = browser.call("POST", "/window/new", {"type": "window"})
            browser.call("POST", "/window", {"handle": opened["handle"]})
            browser.go(f"http://{web.address}/#/s/{session}")
            browser.wait("document.querySelector('.session[data-follows]')")
            found.append((browser, opened["handle"], session))
    return found


def begun(journal: list[dict[str, Any]]) -> list[str]:
    """Return the text of each turn's message; one that was cut and resumed has two turns."""
    texts = {entry["id"]: entry["text"] for entry in journal if entry["type"] == "accepted"}
    return [texts[entry["item"]] for entry in journal if entry["type"] == "turn_started"]


def is_right(browser: Browser, handle: str, texts: list[str]) -> bool:
    """Whether a page that nobody touched shows the newest messages, each once and in order."""
    browser.call("POST", "/window", {"handle": handle})
    try:
        last = "[...document.querySelectorAll('.said .words')].at(-1)?.textContent"
        browser.wait(f"{last} === arguments[0]", texts[-1])
    except AssertionError as error:
        print(error)
        return False
    shown = browser.texts(".said .words")
    if shown == texts[-len(shown) :]:
        return True
    print(f"shown {shown}, there is {texts[-len(shown) :]}")
    return False


def load(minutes: float) -> None:
    """Many sessions and pages for some minutes; the power is cut in each of them."""
    head(f"{SESSIONS} sessions, {STREAMS} pages and streams, {minutes:g} minutes")
    with scene(words=60) as place, closing(Driver()) as driver:
        web = start(place)
        port, token = web.address.rpartition(":")[2], web.token
        sessions = [web.begin() for _ in range(SESSIONS)]
        followers = [Follower(web.address, token, session) for session in sessions[:STREAMS]]
        pages = pages_on(driver, web, sessions[:STREAMS])
        talk = Talk(web, sessions)
        talk.start()
        cuts, until = 0, time.monotonic() + 60 * minutes
        while (left := until - time.monotonic()) > 0:
            time.sleep(min(left, 60.0))
            if time.monotonic() < until:
                web.kill()
                cuts += 1
                web = start(place, "--port", port, token=token)
                for session in sessions:
                    web.ask("POST", f"sessions/{session}/queue/resume")  # nothing runs by itself
                talk.web = web
        talk.is_over.set()
        talk.join()
        for session in sessions:
            while any(row["state"] == "pending" for row in waiting_in(web, session)):
                time.sleep(0.5)
        lost = doubled = disordered = 0
        journals = {session: web.page(session) for session in sessions}
        accepted = {
            session: [entry["text"] for entry in journal if entry["type"] == "accepted"]
            for session, journal in journals.items()
        }
        for session, texts in talk.sent.items():
            there = accepted[session]
            lost += len(set(texts) - set(there))
            doubled += len(there) - len(set(there))
            disordered += [text for text in there if text in set(texts)] != texts
        gaps = 0
        for follower in followers:
            journal = [(event["seq"], event["type"]) for event in journals[follower.session]]
            newest, seen = journal[-1][0], follower.numbered
            follower.wait(lambda seen=seen, newest=newest: bool(seen) and seen[-1]["seq"] >= newest)
            told = [(event["seq"], event["type"]) for event in seen if event["seq"] <= newest]
            gaps += told != journal
            follower.stop()
        wrong = sum(not is_right(*page[:2], begun(journals[page[2]])) for page in pages)
        count = sum(map(len, talk.sent.values()))
        row("  times that the power was cut", cuts)
        row(f"  of {count} acknowledged messages lost", lost, "0", ok=not lost)
        row("  doubled", doubled, "0", ok=not doubled)
        row(f"  of {SESSIONS} sessions out of order", disordered, "0", ok=not disordered)
        row(f"  of {STREAMS} streams with a gap or a double", gaps, "0", ok=not gaps)
        row(f"  of {STREAMS} pages that do not show what there is", wrong, "0", ok=not wrong)
        row("  memory of the server", memory(web), unit="MiB")
        web.close()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--minutes"]:
        load(float(sys.argv[2]))
    else:
        busy_and_cut()
        waiting(int(sys.argv[1]) if len(sys.argv) > 1 else IDLE)
