"""The page that `steersman serve` shows, in a real browser: what people see, and what they do."""

import random
import signal
from contextlib import ExitStack
from typing import Any

import pytest
from blackbox.terminal import Terminal
from support.driver import COMMAND, WAIT, Gate, Place
from support.model_server import Door, Stall, Text, Tools
from support.patience import seconds
from support.served import Served

from .browser import ENTER, Browser
from .conftest import Open, Start, code_for

pytestmark = pytest.mark.timeout(300)

DOWN, UP, ESCAPE, SPACE = "\ue015", "\ue013", "\ue00c", " "
WAITING = ".item.is-pending .item-text"


def shell(command: str) -> Tools:
    """A model's wish to run a command."""
    return Tools([{"tool": "shell", "arguments": {"command": command}}], match="begin", times=1)


def touch(name: str, match: str) -> Tools:
    """A model's wish to write a file."""
    call = {"tool": "write", "arguments": {"path": name, "content": "x"}}
    return Tools([call], match=match, times=1)


def open_session(one: Browser, web: Served, session: str, part: str = "") -> None:
    """Show a session, or a part of its view; when it is there, events come."""
    one.go(f"http://{web.address}/#/s/{session}{part}")
    if session and not part:
        one.wait("document.querySelector('.session[data-follows]')")


def begun(browser: Open, web: Served, **device: Any) -> tuple[Browser, str]:
    """Begin a session, and show it in a browser, which is as `device` says."""
    one, session = browser(web, **device), web.begin()
    open_session(one, web, session)
    return one, session


def say(web: Served, session: str, text: str, said_as: str = "auto") -> None:
    """Send a message from the desk."""
    answer = web.ask("POST", f"sessions/{session}/messages", {"text": text, "as": said_as})
    assert answer.status == 202, answer


def at_a_gate(web: Served, session: str, one: Browser, gate: Gate) -> None:
    """Begin a turn, allow its command with a tap, and wait until that runs."""
    say(web, session, "begin")
    one.wait_text("May shell run?", ".question")
    one.click(".question button.accent")
    gate.wait()
    one.wait("!document.querySelector('.question')")


def test_the_first_look_offers_the_folders_that_are_known(
    place: Place, serve, served: Start, browser: Open
) -> None:
    """A new session begins in one of them; a link that was used leaves the browser as it was."""
    serve(Text("Hello yourself.", times=0))
    web = served()
    web.begin()
    one = browser(web)
    one.wait("document.querySelector('#folder')?.value === arguments[0]", str(place.folder))
    one.click(".new-session .accent")
    one.type("#input", "hello")
    one.click(".send")
    one.wait_text("Hello yourself.", ".entries")
    one.go(f"http://{web.address}/#pair=USED-CODE")
    one.wait_text("this browser stays paired as phone", "#toasts")


@pytest.mark.nightly
def test_from_the_sofa(place: Place, serve, served: Start, browser: Open, gate: Gate) -> None:
    """A phone answers with a tap, drags the queue, and steers; both it and the desk see who said what."""
    door = Door()
    serve(
        shell(gate.command),
        Text("The **first** words", match="begin", door=door),
        Text("As you like.", times=0, match="streaming"),
        Text("Done."),
    )
    web = served()
    phone = browser(web, "phone", width=390)
    desk = browser(web, "laptop")
    session = web.begin()
    for one in (phone, desk):
        open_session(one, web, session)
        one.wait("document.querySelector('#input')")
    at_a_gate(web, session, phone, gate)
    desk.wait_text("allowed", ".entries")

    for text in ("docs", "tests", "changelog"):
        phone.type("#input", text)
        phone.click(".ways label:nth-of-type(3)")
        phone.click(".send")
        phone.wait_text(text, ".queue")
    assert phone.texts(WAITING) == desk.texts(WAITING) == ["docs", "tests", "changelog"]
    phone.click(".strip")
    phone.wait("document.querySelector('.panel').getBoundingClientRect().right <= innerWidth")
    phone.drag(".item:nth-child(4) .grip", ".item:nth-child(2) .grip")
    for one in (phone, desk):
        one.wait(
            "[...document.querySelectorAll(arguments[0])].map((one) => one.textContent).join()"
            " === 'changelog,docs,tests'",
            WAITING,
        )
    desk.drag(".item:nth-child(2) .grip", ".item:nth-child(4) .grip", kind="mouse")
    phone.wait("document.querySelector(arguments[0]).textContent === 'docs'", WAITING)
    stored = web.ask("GET", f"sessions/{session}/queue").data["items"]
    assert [item["text"] for item in stored if item["state"] == "pending"] == phone.texts(WAITING)
    phone.click(".panel-close button")

    phone.type("#input", "prefer the streaming parser")
    phone.click(".ways label:nth-of-type(2)")
    phone.click(".send")
    desk.wait_text("steers soon", ".queue")
    gate.open()
    for one in (phone, desk):
        one.wait_text("prefer the streaming parser", ".said.is-steer")
        assert "phone" in one.texts(".said.is-steer header")[0]
        assert "desk" in one.texts(".said header")[0]
    web.until(session, "turn_ended")
    for one in (phone, desk):
        one.wait("document.querySelectorAll('.turn-ended').length === 4")
        assert one.texts(".said .words") == [
            "begin",
            "prefer the streaming parser",
            "docs",
            "tests",
            "changelog",
        ]
        assert one.complaints() == []
    door.close()


@pytest.mark.nightly
def test_two_terminals_and_a_page_see_the_same(
    place: Place, serve, served: Start, browser: Open, gate: Gate
) -> None:
    """What each of them says is shown to the others with who said it; the work outlives a window."""
    serve(shell(gate.command), Text("As you like.", match="parser", times=1), Text("Done."))
    web = served()
    with ExitStack() as after:
        desk = Terminal(place, [*COMMAND, "chat"])
        after.callback(desk.close)
        desk.wait("runs in `steersman serve`")
        desk.type("begin\r")
        desk.wait("gate.here")
        sofa = Terminal(place, [*COMMAND, "attach", "last", "--user", "sofa"])
        after.callback(sofa.close)
        sofa.wait("gate.here")
        (session,) = [session["id"] for session in web.ask("GET", "sessions").data["sessions"]]
        phone = browser(web, "phone", width=390)
        open_session(phone, web, session)
        phone.click(".question button.accent")
        gate.wait()
        phone.type("#input", "prefer the streaming parser")
        phone.click(".ways label:nth-of-type(2)")
        phone.click(".send")
        for terminal in (desk, sofa):
            terminal.wait("phone: prefer the streaming parser")
        sofa.type("/queue add and the docs\r")
        phone.wait_text("and the docs", ".queue")
        desk.wait("and the docs")
        desk.hang_up()
        desk.process.wait(seconds(WAIT))
        gate.open()
        sofa.wait("Done.")
        phone.wait("document.querySelectorAll('.turn-ended').length === 2")
        said = "[...document.querySelectorAll('.said')].map((one) => one.innerText).join(' | ')"
        shown = str(phone.run(f"return {said}"))
        assert "phone" in shown.split(" | ")[1]
        assert "sofa" in shown.split(" | ")[2]
        sofa.type("/exit\r")
        sofa.process.wait(seconds(WAIT))
    assert place.stored(session)["state"] == "idle"
    assert phone.complaints() == []


@pytest.mark.nightly
def test_an_answer_streams_and_is_drawn(serve, served: Start, browser: Open) -> None:
    """Its pieces are there before it ends; tables, code and links become elements, once."""
    door = Door()
    table = "| a | b |\n|---|--:|\n| 1 | 2 |\n"
    code = "```python\ndef f():  # why\n    return 'x'\n```\n"
    links = "[docs](https://example.org/x) [bad](javascript:alert(1)) ![pic](https://example.org/p)"
    serve(Text(f"## Title\n\n{table}\n{code}\n{links}\n\n- [x] done\n\nlast", door=door))
    web = served()
    one, _ = begun(browser, web)
    one.type("#input", f"go on{ENTER}")
    one.wait_text("last", ".answer.is-live")
    one.wait("document.querySelector('.stop').checkVisibility()")
    door.open()
    one.wait("document.querySelector('.turn-ended')")
    assert not one.run("return document.querySelector('.is-live')")
    assert one.texts(".answer h4") == ["Title"]
    assert one.texts(".answer td") == ["1", "2"]
    assert one.texts(".answer .code-word") == ["def", "return"]
    assert one.texts(".answer .code-comment") == ["# why"]
    targets = "return [...document.querySelectorAll('.answer a')].map((one) => one.href)"
    assert one.run(targets) == ["https://example.org/x", "https://example.org/p"]
    assert not one.run("return document.querySelector('.answer img')")
    assert one.complaints() == []
    door.close()


@pytest.mark.nightly
def test_a_page_that_opens_while_an_answer_streams_has_all_of_it(
    serve, served: Start, browser: Open
) -> None:
    """Opened and opened again at some moments of it: what was streamed, without a gap, once."""
    door, words = Door(), " ".join(f"word{number}" for number in range(150))
    model = serve(Text(words, pause=0.02, door=door))
    web = served()
    one = browser(web)
    session = web.begin()
    say(web, session, "go on")
    model.wait_requests(1)
    for _ in range(4):
        one.go("about:blank")
        open_session(one, web, session)
        one.wait_text("word0 word1 ", ".answer.is-live")
    one.wait_text("word149", ".answer.is-live")
    assert one.texts(".answer .words") == [words]
    door.open()
    one.wait("document.querySelector('.turn-ended')")
    assert one.texts(".answer .words") == [words]
    assert one.complaints() == []
    door.close()


@pytest.mark.nightly
def test_what_happens_while_an_answer_streams_stands_above_it(
    serve, served: Start, browser: Open
) -> None:
    """The answer stays one; a page that is opened later has the same order."""
    door = Door()
    serve(Text("one two", door=door), Text("Done."))
    web = served()
    one, session = begun(browser, web)
    one.type("#input", f"go on{ENTER}")
    one.wait_text("one two", ".answer.is-live")
    say(web, session, "later", "queue")
    reworded = web.ask("PATCH", f"sessions/{session}/queue/2", {"text": "much later"})
    assert reworded.status == 200, reworded
    one.wait_text("Elsewhere: #2 reads now: much later", ".entries")
    assert one.texts(".answer.is-live .words") == ["one two"]
    door.open()
    one.wait_text("Done.", ".entries")
    assert one.texts(".answer .words") == ["one two", "Done."]
    kinds = "return [...document.querySelectorAll('.note, .answer')].map((one) => one.className)"
    assert [kind.split()[1] for kind in one.run(kinds)] == ["note", "note", "answer", "answer"]
    assert one.complaints() == []
    door.close()


@pytest.mark.nightly
def test_an_orderly_end_cuts_nothing_off(
    serve, served: Start, browser: Open, gate: Gate, place: Place
) -> None:
    """What was left is named so, and its Resume is no news from elsewhere."""
    serve(shell(gate.command), Text("Done."))
    chat = place.at_work(gate, "begin")
    chat.send({"text": "later", "as": "queue"})
    chat.wait("queue")
    session = chat.session
    assert chat.signal(signal.SIGTERM) == 143
    web = served()
    one = browser(web)
    open_session(one, web, session)
    one.click(".not-open button")
    one.wait_text("Left before: 2 messages kept", ".entries")
    one.click(".held button")
    one.wait_text("Done.", ".entries")
    assert "Elsewhere" not in one.run("return document.body.textContent")


@pytest.mark.nightly
def test_the_last_message_is_sent_again(serve, served: Start, browser: Open) -> None:
    """The page goes to the session that goes on."""
    serve(Text("Blue.", match="sky"), Text("Red.", match="rose"))
    web = served()
    one, session = begun(browser, web)
    one.type("#input", f"which colour has the sky{ENTER}")
    one.wait_text("Blue.", ".answer")
    one.type("#input", f"/edit-last which colour has a rose{ENTER}")
    one.wait_text("Red.", ".answer")
    assert session not in one.run("return location.hash")
    assert one.texts(".said .words") == ["which colour has a rose"]
    assert one.complaints() == []


def test_a_stop_and_a_held_queue(serve, served: Start, browser: Open, gate: Gate) -> None:
    """Stop ends the turn; what waited is held, and goes on when a person says so."""
    serve(shell(gate.command), Text("Done."))
    web = served()
    one, session = begun(browser, web)
    at_a_gate(web, session, one, gate)
    say(web, session, "and then", "queue")
    one.wait_text("and then", ".queue")
    one.click(".stop")
    one.wait_text("interrupted", ".turn-ended")
    one.wait_text("Held", ".held")
    held = web.ask("GET", f"sessions/{session}").data["seq"]
    one.click(".held button")
    web.until(session, "turn_started", after=held)
    one.wait("!document.querySelector('.item')")
    one.wait_text("Done.", ".entries")
    assert "Elsewhere" not in one.run("return document.body.textContent")


@pytest.mark.nightly
def test_files_are_reverted_after_a_look(place: Place, serve, served: Start, browser: Open) -> None:
    """The dialog shows what would be restored, and nothing is until a person says so."""
    serve(touch("new.txt", "begin"), Text("Done."))
    web = served()
    one, session = begun(browser, web)
    say(web, session, "begin")
    one.click(".question button.accent")
    one.wait("document.querySelector('.turn-ended')")
    assert (place.folder / "new.txt").read_text() == "x"
    one.click(".turn-ended button")
    one.wait_text("new.txt", "dialog pre")
    assert (place.folder / "new.txt").exists()
    one.click("dialog button.danger")
    one.wait_text("new.txt", ".card")
    assert not (place.folder / "new.txt").exists()


def test_a_revert_of_nothing_is_no_revert(
    place: Place, serve, served: Start, browser: Open
) -> None:
    """Nor is one that keeps every file: only a restored file is shown as reverted."""
    serve(touch("new.txt", "begin"), Text("Done."))
    web = served()
    one, session = begun(browser, web)
    for typed, answer in (
        ("/revert", "There is nothing to revert."),
        ("/revert undo", "There is no revert to undo."),
    ):
        one.type("#input", f"{typed}{ENTER}")
        notes = "[...document.querySelectorAll('.entries .note')]"
        one.wait(f"{notes}.some((note) => note.textContent.includes(arguments[0]))", answer)
    assert one.texts(".card") == []
    say(web, session, "begin")
    one.click(".question button.accent")
    one.wait("document.querySelector('.turn-ended')")
    (place.folder / "new.txt").write_text("mine")
    one.type("#input", f"/revert{ENTER}")
    one.wait_text("new.txt", ".card")
    assert one.texts(".card header") == ["Nothing was reverted"]
    assert (place.folder / "new.txt").read_text() == "mine"


AT_END = (
    "(({ scrollHeight, scrollTop, clientHeight }) => scrollHeight - scrollTop - clientHeight < 2)"
    "(document.querySelector('.scroller'))"
)
DRAWN = (
    "window.isDrawn = false; const frames = (left) => left"
    " ? requestAnimationFrame(() => frames(left - 1)) : (window.isDrawn = true); frames(4);"
)


@pytest.mark.parametrize("layout", ["", "scroller.scrollTop;"], ids=["later", "at once"])
def test_the_end_stays_in_view_until_a_person_scrolls(
    serve, served: Start, browser: Open, layout: str
) -> None:
    """A card below that goes away moves the view, and so does what comes just then: no person did."""
    serve(Text("\n\n".join(f"Line {number}." for number in range(60))))
    web = served()
    one, session = begun(browser, web)
    one.resize(1100, 800)
    say(web, session, "begin")
    one.wait("document.querySelector('.turn-ended')")
    one.run(
        "const card = document.createElement('div'); card.style = 'height: 250px'; card.id = 'card';"
        f"document.querySelector('.dock').append(card); {DRAWN}"
    )
    one.wait(f"window.isDrawn && {AT_END}")
    one.run(
        "const [scroller, entries] = ['.scroller', '.entries'].map((at) => document.querySelector(at));"
        "const append = () => { const more = document.createElement('p');"
        f" more.style = 'height: 400px'; entries.append(more); {DRAWN} }};"
        "scroller.addEventListener('scroll', append, { once: true, capture: true });"
        f"window.isDrawn = false; document.getElementById('card').remove(); {layout}"
    )
    one.wait("window.isDrawn")
    assert one.run(f"return {AT_END}")
    up = {"type": "scroll", "origin": "viewport", "x": 600, "y": 300, "deltaX": 0, "deltaY": -300}
    one.call("POST", "/actions", {"actions": [{"type": "wheel", "id": "w", "actions": [up]}]})
    one.wait(f"!{AT_END}")
    say(web, session, "again")
    one.wait("document.querySelector('.latest').checkVisibility()")
    assert not one.run(f"return {AT_END}")


@pytest.mark.nightly
def test_by_keyboard_alone(serve, served: Start, browser: Open, gate: Gate) -> None:
    """Questions are answered, messages moved, edited and dropped without a pointer; the focus stays."""
    serve(shell(gate.command), Text("Done."))
    web = served()
    one, session = begun(browser, web)
    say(web, session, "begin")
    one.wait_text("May shell run?", ".question")
    one.tab_to("Allow")
    one.press(ENTER)
    gate.wait()
    one.wait("!document.querySelector('.question')")
    assert one.focus() == "Message"
    for text in ("docs", "tests", "changelog"):
        say(web, session, text, "queue")
        one.wait_text(text, ".queue")
    one.tab_to("Move #2")
    one.press(DOWN)
    one.wait("document.querySelector(arguments[0]).textContent === 'tests'", WAITING)
    assert one.focus().startswith("Move #2: docs. Place 2 of 3")
    one.press(DOWN)
    one.wait_text("place 3 of 3", "#polite")
    one.press(UP)
    one.wait_text("place 2 of 3", "#polite")
    one.tab_to("Edit #2")
    one.press(ENTER)
    one.press("\ue009", "a")  # the text is replaced: select all, then type
    one.press(*" and more", ENTER)
    one.wait_text("and more", ".queue")
    assert one.focus() == "Edit #2"
    one.tab_to("Drop #2")
    one.press(SPACE)
    one.wait("document.querySelectorAll(arguments[0]).length === 2", WAITING)
    assert "#4" in one.focus()
    stored = web.ask("GET", f"sessions/{session}/queue").data["items"]
    assert [item["text"] for item in stored] == ["begin", "tests", "changelog"]
    gate.open()


@pytest.mark.nightly
def test_a_device_that_may_only_look(serve, served: Start, browser: Open, gate: Gate) -> None:
    """It sees everything, and is offered nothing that would be refused."""
    serve(shell(gate.command), Text("Done."))
    web = served()
    one, session = begun(browser, web, name="wall", scope="look")
    say(web, session, "begin")
    one.wait_text("May shell run?", ".question")
    assert one.texts(".question button, .send, .stop, .new-session") == []
    one.wait_text("may not answer", ".question")


@pytest.mark.nightly
def test_a_revoked_device_is_shut_out(place: Place, serve, served: Start, browser: Open) -> None:
    """In the middle of a stream nothing of the session stays on the page; a new code lets it in again."""
    door = Door()
    serve(Text("The secret plan", door=door))
    web = served()
    one, session = begun(browser, web)
    say(web, session, "begin")
    one.wait_text("secret plan", ".answer.is-live")
    assert place.run("devices", "revoke", "phone").returncode == 0
    one.wait("document.querySelector('#code')")
    assert "secret" not in one.run("return document.documentElement.textContent")
    door.open()
    one.type("#code", "nonsense" + ENTER)
    one.wait_text("wrong", ".problem")
    one.run("document.querySelector('#code').value = ''")
    one.type("#code", code_for(place, "phone again") + ENTER)
    one.wait_text("secret plan", ".answer")
    door.close()


CUT_OFF = "document.querySelector('.dot.is-unknown') && !document.querySelector('.dot.is-running')"
"""No call runs any more, and of the one that a crash cut off the outcome is not known."""


@pytest.mark.nightly
def test_a_power_cut(serve, served: Start, browser: Open, gate: Gate, port: str) -> None:
    """The page finds the new program; nothing is doubled or lost, and what was typed arrives."""
    serve(
        Text("An answer of old.", match="old one", times=0),
        shell(gate.command),
        Text("An answer of new.", times=0, match="new one"),
        Text("Done."),
    )
    web = served("--port", port)
    one, session = begun(browser, web)
    say(web, session, "old one")
    one.wait_text("An answer of old.", ".answer")
    at_a_gate(web, session, one, gate)
    say(web, session, "later", "queue")
    one.wait_text("later", ".queue")
    web.kill()
    one.wait("document.querySelector('.connection')?.checkVisibility()")
    one.type("#input", f"new one{ENTER}")
    one.wait_text("waits for the connection", ".pending")
    again = served("--port", port, name="desk2")
    one.wait("!document.querySelector('.connection').checkVisibility()")
    one.wait_text("new one", ".entries")
    one.wait("!document.querySelector('.pending .entry')")
    one.wait_text("An answer of new.", ".entries")
    one.wait(CUT_OFF)
    shown = one.texts(".said .words")
    assert shown == ["old one", "begin", "new one"]
    assert one.texts(WAITING) == ["later"]
    seen = one.texts(".entries > .entry:not(.speaker)")
    open_session(one, again, "")
    one.wait("!document.querySelector('.session')")
    open_session(one, again, session)
    one.wait_text("An answer of new.", ".entries")
    one.wait(CUT_OFF)
    afresh = one.texts(".entries > .entry:not(.speaker)")
    assert [text for text in seen if "answer of" in text or "one" in text] == [
        text for text in afresh if "answer of" in text or "one" in text
    ]
    assert sum("An answer of old." in text for text in afresh) == 1


@pytest.mark.nightly
def test_a_page_that_stays_open_sees_what_a_power_cut_ended(
    serve, served: Start, browser: Open, port: str
) -> None:
    """Neither a question nor a turn is there any more, as for a page that is opened then."""
    serve(touch("a", "one"))
    web = served("--port", port)
    one, session = begun(browser, web)
    say(web, session, "one")
    one.wait_text("May write run?", ".question")
    web.kill()
    one.wait("document.querySelector('.connection')?.checkVisibility()")
    again = served("--port", port, name="desk2")
    one.wait("!document.querySelector('.connection').checkVisibility()")
    one.wait("!document.querySelector('.question')")
    one.wait_text("interrupted", ".queue")
    one.wait_text("No program has this session open")
    assert one.run("return document.querySelector('.composer .stop').hidden")
    seen = one.texts(".queue")
    open_session(one, again, "")
    one.wait("!document.querySelector('.session')")
    open_session(one, again, session)
    one.wait_text("interrupted", ".queue")
    assert one.texts(".queue") == seen
    assert one.complaints() == []


@pytest.mark.nightly
def test_a_subagent_that_a_power_cut_ended_is_at_work_no_more(
    serve, served: Start, browser: Open, port: str
) -> None:
    """Neither on the page that stays open nor on one that is opened then."""
    delegated = [{"tool": "delegate", "arguments": {"task": "count", "name": "kid"}}]
    serve(Tools(delegated, match="one", times=1), Stall("One"))
    web = served("--port", port)
    one, session = begun(browser, web)
    say(web, session, "one")
    one.wait_text("working", ".children")
    web.kill()
    again = served("--port", port, name="desk2")
    one.wait_text("interrupted", ".children")
    open_session(one, again, "")
    one.wait("!document.querySelector('.session')")
    open_session(one, again, session)
    one.wait_text("interrupted", ".children")
    assert not one.run("return document.querySelectorAll('.child .icon-button').length")


@pytest.mark.nightly
def test_the_lid_is_closed(place: Place, serve, served: Start, browser: Open, gate: Gate) -> None:
    """The job goes on without its terminal; later each way in shows its title and what happened."""
    serve(shell(gate.command), Text("It went well."))
    web = served()
    with ExitStack() as after:
        desk = Terminal(place, [*COMMAND, "chat", "--yes"])
        after.callback(desk.close)
        desk.wait("runs in `steersman serve`")
        desk.type("begin the long job\r")
        gate.wait()
        desk.type("/rename The long job\r")
        desk.wait("The long job")
        desk.type("/detach\r")
        assert desk.process.wait(seconds(WAIT)) == 0
        (session,) = [session["id"] for session in web.ask("GET", "sessions").data["sessions"]]
        gate.open()
        web.until(session, "turn_ended")
        assert "The long job" in place.run("sessions", "list").stdout
        one = browser(web, width=390)
        one.wait_text("The long job", ".sessions")
        one.click(".session-link")
        one.wait_text("It went well.", ".answer")
        assert one.texts(".said .words") == ["begin the long job"]
        assert "The long job" in one.texts("h1")
        back = Terminal(place, [*COMMAND, "attach", "last"])
        after.callback(back.close)
        back.wait("It went well.")
        back.type("/exit\r")
        assert back.process.wait(seconds(WAIT)) == 0
    assert place.stored(session)["state"] == "idle"


@pytest.mark.nightly
def test_a_long_journal_comes_in_pages(serve, served: Start, browser: Open) -> None:
    """The newest is there first, the oldest when a person goes up, and each message once."""
    serve(Text("Yes."))
    web = served()
    one, session = begun(browser, web)
    for number in range(1, 61):
        say(web, session, f"message {number}.", "queue")
        if number % 10 == 0:
            one.wait("document.querySelectorAll('.turn-ended').length >= arguments[0]", number)
    open_session(one, web, "")
    one.wait("!document.querySelector('.session')")
    open_session(one, web, session)
    one.wait("document.querySelector('.said')")
    assert "message 1." not in one.texts(".said .words")
    while one.run("return document.querySelector('.more').checkVisibility()"):
        one.run("document.querySelector('.more').click()")
    one.wait("document.querySelectorAll('.said').length === 60")
    newest = web.ask("GET", f"sessions/{session}").data["seq"]
    told = web.ask("GET", f"sessions/{session}/events?upto={newest}").data["events"]
    texts = {event["id"]: event["text"] for event in told if event["type"] == "accepted"}
    began = [texts[event["item"]] for event in told if event["type"] == "turn_started"]
    assert one.texts(".said .words") == began
    assert len(set(began)) == 60
    assert one.texts(".answer .words") == ["Yes."] * 60


@pytest.mark.nightly
def test_two_sessions_side_by_side(serve, served: Start, browser: Open) -> None:
    """The slider goes over the steps of both, and the first difference is lit, with its texts."""
    serve(Text("Hello."), Text("One way."), Text("Hello."), Text("<b>Another</b> way."))
    web = served()
    one, left = begun(browser, web)
    right = web.begin()
    for session in (left, right):
        for text in ("hi", "how?"):
            newest = web.ask("GET", f"sessions/{session}").data["seq"]
            say(web, session, text)
            web.until(session, "turn_ended", newest)
    open_session(one, web, left, "/beside")
    one.wait(
        f"[...document.querySelectorAll('select option')].some((one) => one.value === '{right}')"
    )
    open_session(one, web, left, f"/beside/{right}")
    one.wait_text("the same for 4 steps", ".moment")
    assert one.texts(".is-parting pre") == ["One way.", "<b>Another</b> way."]
    assert "model calls22" in one.texts(".facts")[0]
    one.click(".time .icon-button")
    one.wait_text("step 4 of", ".moment")
    assert [text.endswith("how?") for text in one.texts(".is-chosen pre")] == [True, True]
    one.click(".time button.plain")
    one.wait("document.querySelector('.is-chosen.is-parting')")


@pytest.mark.nightly
def test_inside(serve, served: Start, browser: Open, gate: Gate) -> None:
    """Each part shows its states with one lit; the slider shows them at any entry, with the messages."""
    serve(shell(gate.command), Text("Done."))
    web = served()
    one, session = begun(browser, web)
    at_a_gate(web, session, one, gate)
    say(web, session, "then", "queue")
    one.click(".said .icon-button")
    one.wait_text("turn t1 began with it", "dialog")
    one.press(ESCAPE)
    one.wait("!document.querySelector('dialog')")
    open_session(one, web, session, "/inside")
    lit = (
        "[...document.querySelectorAll('.part')].find((one) => one.querySelector('b').textContent"
        ".startsWith(arguments[0]))?.querySelector('[aria-current]')?.textContent === arguments[1]"
    )
    for part, state in (("session", "busy"), ("turn", "acting"), ("shell", "running")):
        one.wait(lit, part, state)
    one.wait(lit, "#2", "pending")
    one.wait_text("may shell run?", ".sequence")
    one.run(
        "const slider = document.querySelector('[type=range]'); slider.value = 1;"
        "slider.dispatchEvent(new Event('input'))"
    )
    one.wait(lit, "session", "idle")
    one.wait_text("entry 1 of", ".moment")
    one.wait_text("No turn yet", ".sequence-place")
    assert "#2" not in one.texts(".part b")
    one.click(".time button.plain")
    one.wait(lit, "session", "busy")
    gate.open()
    web.until(session, "turn_ended")
    one.wait(lit, "session", "idle")
    assert one.complaints() == []


MARKUP = "<img src=x onerror=alert(1)><script>alert(2)</script>&lt;b&gt;"
HOSTILE = f"{MARKUP} \u202egnp.exe\u202c \u200b\x1b[31m"


@pytest.mark.nightly
def test_hostile_text_is_only_text(place: Place, serve, served: Start, browser: Open) -> None:
    """In every field that an outsider fills: nothing becomes markup, nothing hides, nothing runs."""
    name = "<b onclick=alert(3)>\u202etxt"
    (place.folder / name).write_text(HOSTILE, "utf-8")
    serve(
        Tools(
            [
                {"tool": "read", "arguments": {"path": name}},
                {"tool": HOSTILE, "arguments": {HOSTILE: HOSTILE}},
                {"tool": "shell", "arguments": {"command": f"echo '{HOSTILE}'", HOSTILE: HOSTILE}},
                {"tool": "shell", "arguments": {"command": f"echo \xad'{HOSTILE}'"}},
            ],
            text=HOSTILE,
            match="begin",
            times=1,
        ),
        Text(f"{HOSTILE}\n\n```html\n{HOSTILE}\n```\n\n| {HOSTILE} |\n|---|\n| {HOSTILE} |\n"),
    )
    web = served()
    one = browser(web)
    one.run("window.alert = () => (document.body.dataset.ran = 'yes')")
    session = web.begin()
    rename = {"name": "rename", "arguments": {"called": HOSTILE}}
    web.ask("POST", f"sessions/{session}/commands", rename)
    open_session(one, web, session)
    say(web, session, f"begin {HOSTILE}")
    one.wait("document.querySelector('.question')")
    pre = one.run("return document.querySelector('.question pre').innerHTML")
    assert "\\xad" in pre
    assert "\u202e" not in pre
    assert "<script" not in pre
    say(web, session, HOSTILE, "queue")
    one.wait_text("\\u202egnp.exe", ".queue")
    one.click(".question button.accent")
    one.wait("document.querySelectorAll('.turn-ended').length === 2")
    one.run("document.querySelectorAll('details').forEach((one) => (one.open = true))")
    one.wait_text("onerror=alert(1)", ".tool-body")
    one.click(".said .icon-button")
    one.wait("document.querySelector('dialog')")
    for view in ("", "/inside"):
        open_session(one, web, session, view)
        one.wait("document.querySelector('.answer, .sequence')")
        made = "img, b[onclick], #app script, [onerror]"
        assert one.run("return document.querySelectorAll(arguments[0]).length", made) == 0
        source = one.run("return document.documentElement.outerHTML")
        assert not [char for char in "\u202e\u200b\x1b" if char in source]
        assert "yes" not in str(one.run("return document.body.dataset.ran"))
    assert MARKUP in one.run("return document.title")
    assert one.complaints() == []


CHOICES = random.Random(7)
TOO_MUCH = {
    "quotes": "".join(CHOICES.choices((">", "> "), k=3_000)) + "x",
    "lists": "".join(CHOICES.choices(("- ", "* ", "+ "), k=1_500)) + "x",
    "indented lists": "".join(f"{'  ' * depth}- item\n" for depth in range(600)).rstrip(),
    "marks": " ".join(
        (*(f"*a{n} **b{n}" for n in range(500)), *(f"c{n}** d{n}*" for n in range(500)))
    ),
}
"""Texts of parts inside each other, none a repetition, which a model would be stopped from saying."""
WIDE = ("|a" * 5_000, "|-" * 5_000, *("a",) * 20_000)
"""A table of as many columns as rows, which a model would be stopped from saying."""


@pytest.mark.nightly
def test_what_cannot_be_drawn_is_shown_as_it_is(serve, served: Start, browser: Open) -> None:
    """An answer that no page can draw is plain text, live and later; what comes after it is drawn."""
    serve(
        *(Text(text, match=f"show {name}.", times=1) for name, text in TOO_MUCH.items()),
        Text("A **calm** end", match="end"),
    )
    web = served()
    one, session = begun(browser, web)
    seq = 0
    for name in TOO_MUCH:
        say(web, session, f"show {name}.")
        seq = web.until(session, "turn_ended", seq)[-1]["seq"]
    say(web, session, "end")
    for _ in ("live", "after a reload"):
        one.wait_text("calm", ".answer strong")
        plain = one.run(
            "return [...document.querySelectorAll('.answer .words > .raw:only-child')]"
            ".map((one) => one.textContent.length)"
        )
        assert plain == [len(text) for text in TOO_MUCH.values()]
        assert one.complaints() == []
        open_session(one, web, session)
    draw = (
        "const { markdown } = await import('/assets/markdown.js');"
        "return markdown(text).firstChild.className"
    )
    for lead in ("", "> "):
        assert (
            one.run(
                f"return (async (text) => {{ {draw} }})(arguments[0])",
                "\n".join(lead + line for line in WIDE),
            )
            == "raw"
        )


@pytest.mark.nightly
@pytest.mark.parametrize("width", [390, 1440])
def test_nobody_is_kept_out(
    width: int, place: Place, serve, served: Start, browser: Open, gate: Gate
) -> None:
    """Axe finds nothing serious in any view, dark or light."""
    table = "# A\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n```python\ndef f(): return 'x' # y\n```\n"
    serve(Text(table, match="explain", times=0), shell(gate.command), Text("Done."))
    web = served()
    one = browser(web, width=width)
    session = web.begin()
    found: dict[str, list[str]] = {}

    def look(view: str) -> None:
        for scheme in ("light", "dark"):
            one.prefer(scheme)
            if barriers := one.barriers():
                found[f"{view}, {scheme}"] = barriers

    look("list")
    one.go(f"http://{web.address}/#/new")
    one.wait("document.querySelector('#folder')")
    look("new session")
    open_session(one, web, session)
    say(web, session, "explain")
    one.wait("document.querySelector('.turn-ended')")
    say(web, session, "begin")
    one.wait("document.querySelector('.question')")
    say(web, session, "then", "queue")
    one.wait_text("then", ".queue")
    look("question")
    one.click(".question button.accent")
    gate.wait()
    one.run("document.querySelectorAll('details').forEach((one) => (one.open = true))")
    look("conversation")
    if width < 500:
        one.click(".strip")
        one.wait("document.querySelector('.panel').getBoundingClientRect().right <= innerWidth")
        look("panel")
        one.click(".panel-close button")
    one.run("document.querySelector('.said .icon-button').click()")
    one.wait("document.querySelector('dialog')")
    look("why")
    open_session(one, web, session, "/inside")
    one.wait("document.querySelector('.sequence')")
    look("inside")
    place.run("devices", "revoke", "phone")
    one.wait("document.querySelector('#code')")
    look("pairing")
    assert not found
    gate.open()
