"""The page at work: goals, subagents, questions of every kind, schedules, messages that are edited."""

import json
import signal
import sys
from collections.abc import Generator
from datetime import datetime, timedelta

import pytest
from blackbox.judged import GO_ON, counting, verdicts
from blackbox.test_serve import CHOOSING
from support.driver import COMMAND, Chat, Gate, Place
from support.model_server import Text, Tools
from support.notes_server import NOTES
from support.push_service import PushService
from support.until import until
from web.browser import ENTER
from web.conftest import Open, Start
from web.test_page import at_a_gate, begun, open_session, say, shell, touch

KID = "count the sheep"
pytestmark = [pytest.mark.nightly, pytest.mark.timeout(300)]


def test_a_goal_is_set_followed_paused_and_dropped(start, served: Start, browser: Open) -> None:
    """Its turns count up to the budget, where it pauses; a person gives it more, and drops it."""
    start(counting, verdicts(GO_ON))
    web = served()
    one, _ = begun(browser, web)
    one.type(".goal-body input[type=text]", "all walls are painted")
    one.type(".goal-body .turns", "2")
    one.click(".goal-body form button")
    one.wait_text("all walls are painted", ".goal-text")
    one.wait_text("2 of 2", ".meter")
    one.wait_text("paused", ".goal-body")
    one.wait_text("budget", ".goal-body")
    one.wait_text("not all of it is there", ".goal-body")
    assert len(one.texts(".entries .answer")) == 2
    one.click(".goal-body button.accent")
    one.wait("document.querySelectorAll('.entries .answer').length === 4")
    one.wait_text("paused", ".goal-body")
    one.click(".goal-body button.quiet")
    one.wait_text("cleared", ".goal-body")
    one.wait("document.querySelector('.goal-body form')")
    assert one.complaints() == []


def test_a_goal_is_paused_in_the_middle(serve, served: Start, browser: Open, gate: Gate) -> None:
    """The turn that runs ends, and no further one begins; another page sees it, too."""
    serve(Tools([gate.call], times=1), Text("Done."))
    web = served()
    one, other = browser(web, "pad"), browser(web, "laptop")
    session = web.begin()
    for page in (one, other):
        open_session(page, web, session)
    one.type(".goal-body input[type=text]", "all walls are painted")
    one.click(".goal-body form button")
    one.click(".question button.accent")
    gate.wait()
    one.click(".goal-body button.plain")
    for page in (one, other):
        page.wait_text("paused", ".goal-body")
    gate.open()
    other.wait_text("Done.", ".answer")
    other.wait("document.querySelectorAll('.turn-ended').length === 1")
    assert web.ask("GET", f"sessions/{session}/queue").data["items"] == []


def test_always_asks_no_more_and_a_no_says_why(
    place: Place, serve, served: Start, browser: Open
) -> None:
    """`Always` holds for the calls after it; the reason of a `Deny` goes to the agent."""
    server = serve(touch("a", "one"), touch("b", "two"), Text("Done."))
    web = served()
    one, session = begun(browser, web, width=390)
    say(web, session, "one")
    one.wait_text("May write run?", ".question")
    one.type(".question input", "b is mine, ask ann")
    one.click(".question button.danger")
    one.wait_text("denied", ".asked")
    one.wait("document.querySelectorAll('.turn-ended').length === 1")
    assert "b is mine, ask ann" in str(server.requests[1].body)
    assert not (place.folder / "a").exists()
    say(web, session, "two")
    one.wait_text("May write run?", ".question")
    one.click(".question button.plain")
    one.wait_text("always allowed", ".entries")
    one.wait("document.querySelectorAll('.turn-ended').length === 2")
    assert (place.folder / "b").exists()
    assert one.complaints() == []


def test_a_held_call_is_changed_on_the_page(
    place: Place, serve, served: Start, browser: Open
) -> None:
    """Its arguments are a field; what is let run is what stands there then, or nothing runs at all."""
    hold = '[[hold]]\ntool = "write"\n[permissions]\nrules = [{ tool = "*", do = "allow" }]\n'
    server = serve(touch("main", "one"), touch("other", "two"), Text("Done."), rest=hold)
    web = served()
    one, session = begun(browser, web, width=390)
    say(web, session, "one")
    one.wait_text("Held. May write run?", ".question")
    one.run("document.querySelector('.question textarea').value = ''")
    one.type(".question textarea", '{"path": "draft", "content": "y"}')
    one.click(".question button.accent")
    one.wait("document.querySelectorAll('.turn-ended').length === 1")
    assert (place.folder / "draft").read_text() == "y"
    assert not (place.folder / "main").exists()
    say(web, session, "two")
    one.wait_text("Held. May write run?", ".question")
    one.type(".question input", "it is there already")
    one.click(".question button.plain")
    one.wait("document.querySelectorAll('.turn-ended').length === 2")
    assert "it is there already" in str(server.requests[-1].body)
    assert not (place.folder / "other").exists()
    assert one.complaints() == []


def test_a_form_of_a_server_is_filled_in_on_the_page(
    place: Place, serve, served: Start, browser: Open
) -> None:
    """Each field is one of the page, a choice a list; what does not fit is refused, and can be mended."""
    pytest.importorskip("mcp", reason="the extra is not installed")
    config = f"[mcp.notes]\ncommand = {json.dumps([sys.executable, str(NOTES)])}\nwait = 60\n"
    config += '[permissions]\nrules = [{ tool = "mcp__*", do = "allow" }]\n'
    call = {"tool": "mcp__notes__file_note", "arguments": {"name": "milk"}}
    server = serve(Tools([call]), Text("Done."), rest=config)
    web = served()
    one, session = begun(browser, web, width=390)
    say(web, session, "file it")
    one.wait_text("notes asks", ".question")
    one.wait_text("Where does milk go?", ".question")
    one.type(".question input[aria-label=Copies]", "0")
    one.click(".question button.accent")
    one.wait_text("`folder` is missing", "body")
    one.run("document.querySelector('.question select').value = 'work'")
    one.run("document.querySelector('.question input').value = '2'")
    one.click(".question button.accent")
    one.wait("document.querySelectorAll('.turn-ended').length === 1")
    assert "filed milk in work, 2 times" in str(server.requests[-1].body)
    assert one.complaints() == []


REALLY = """
[[step]]
id = "last"
needs = ["name"]
ask = { text = "Really?" }
"""


def test_a_workflow_asks_and_a_page_answers(
    place: Place, serve, served: Start, browser: Open
) -> None:
    """Choices are buttons, free text has a field; a question that is over disappears everywhere."""
    serve(Text("Hello."))
    (place.folder / "choosing.toml").write_text(CHOOSING + REALLY, "utf-8")
    web = served()
    run = Chat(place, (*COMMAND, "run", "--json", "choosing.toml"))
    place.chats.append(run)
    run.wait("question")
    one, other = browser(web, "pad", width=390), browser(web, "laptop")
    for page in (one, other):
        open_session(page, web, run.session)
        page.wait_text("Which colour?", ".question")
    assert one.texts(".question button") == ["dark red", "blue"]
    one.click(".question button")
    for page in (one, other):
        page.wait_text("What is it called?", ".question")
        page.wait("document.querySelectorAll('.question').length === 1")
    one.type(".question textarea", "the first one, red")
    one.click(".question button")
    other.wait_text("Really?", ".question")
    other.wait("document.querySelectorAll('.question').length === 1")
    run.answer(run.wait("question", step="last"), "no")
    run.wait("run_ended", status="succeeded")
    for page in (one, other):
        page.wait("!document.querySelector('.question')")
        page.wait_text("Workflow succeeded", ".entries")
        assert page.complaints() == []
    steps = place.stored(run.session)["run"]["steps"]
    assert "dark red" in str(steps["paint"])
    assert "the first one, red" in str(steps["name"])
    assert run.close() == 0
    one.wait_text("A run of the workflow choosing: succeeded.", ".not-open")
    other.wait("document.querySelector('.session-link .chip').textContent === 'succeeded'")
    assert one.texts(".not-open code, .not-open button") == []
    assert not one.run("return document.querySelector('.composer').checkVisibility()")


def test_a_run_that_no_program_has_open_promises_nothing(
    place: Place, serve, served: Start, browser: Open, gate: Gate
) -> None:
    """The page says how it ended and which command resumes it: no message and no button does."""
    serve(Text("Hello."))
    step = f"""id = "wait"\nrun = ["sh", "-c", \'\'\'{gate.command}\'\'\']\n"""
    (place.folder / "halting.toml").write_text(f'[workflow]\nname = "halting"\n[[step]]\n{step}')
    web = served()
    run = place.job("halting.toml")
    gate.wait()
    one, late = browser(web), browser(web, "laptop")
    open_session(one, web, run.session)
    one.wait("document.querySelector('.composer').checkVisibility()")
    assert run.signal(signal.SIGINT) == 130
    open_session(late, web, run.session)
    for page in (one, late):
        page.wait_text("A run of the workflow halting: interrupted.", ".not-open")
        assert page.texts(".not-open code") == [f"steersman run --resume {run.session}"]
        assert page.texts(".not-open button") == []
        assert not page.run("return document.querySelector('.composer').checkVisibility()")
        assert page.complaints() == []


def test_what_a_schedule_did_is_beside_the_sessions(
    place: Place, serve, served: Start, browser: Open
) -> None:
    """Its time, how it went, what it said, and the way to its session; also in `schedule list`."""
    at = (datetime.now() - timedelta(hours=3)).isoformat(timespec="minutes")
    rest = f"""
[[schedule]]
name = "news"
at = "{at}"
missed = "once"
say = "What is new?"
folder = "{place.folder}"

[[schedule]]
name = "later"
at = "2999-01-01T07:00"
run = "nothing"
"""
    serve(Text("Two tests fail since yesterday."), rest=rest)
    web = served()
    one = browser(web, width=390)
    one.wait_text("Two tests fail since yesterday.", ".schedule-said")
    one.wait_text("done", ".schedule")
    assert at[-3:] in one.texts(".schedule-last")[0]
    assert "cannot be carried out" in one.texts(".schedule")[1]
    one.click('.schedule a[aria-label="Open what news did"]')
    one.wait_text("What is new?", ".said")
    one.wait_text("schedule news", ".said")
    listed = place.run("schedule", "list")
    assert "news, " in listed.stdout
    assert ": Two tests fail since yesterday." in listed.stdout
    assert one.complaints() == []


def test_each_thing_is_shown_once_and_as_it_is(
    serve, served: Start, browser: Open, gate: Gate, place: Place
) -> None:
    """The list says who asks; an interrupting message stands once; only what changed can be reverted.

    Quotation marks stay such in the diagram, and a view without a session offers nothing.
    """
    serve(shell(gate.command), Text("Done."))
    web = served()
    one, session = begun(browser, web)
    say(web, session, 'hello "you"; #1')
    one.wait("document.querySelectorAll('.turn-ended').length === 1")
    assert one.texts(".turn-ended button") == []
    placeholder = (
        "const one = document.querySelector('.goal-body input'); one.value = one.placeholder;"
    )
    assert one.run(f"{placeholder} return one.scrollWidth <= one.clientWidth")
    say(web, session, "begin")
    one.wait_text("waits for you", ".sessions", timeout=3)
    one.click(".question button.accent")
    gate.wait()
    say(web, session, "rather this", "interrupt")
    one.wait("document.querySelectorAll('.turn-ended').length === 3")
    assert one.texts(".said .words").count("rather this") == 1
    assert one.texts(".turn-ended button") == ["Revert files…"]
    first = web.begin()
    say(web, first, 'hello "you"; #1')
    one.go(f"http://{web.address}/#/s/{first}/inside")
    one.wait_text('hello "you"; #1', ".sequence")
    one.go(f"http://{web.address}/#/s/nothing")
    one.wait_text("No such session")
    for part in (".held", ".dock", ".panel", ".more"):
        assert not one.run("return document.querySelector(arguments[0]).checkVisibility()", part)
    assert one.complaints() == []


SLOW_ANSWERS = """
const ask = window.fetch;
window.areSlow = true;
window.fetch = async (...given) => {
  const answer = await ask(...given);
  if (given[1]?.method !== "PATCH") return answer;
  const gone = () => !document.querySelector(".item textarea");
  while (!gone()) await new Promise((done) => setTimeout(done, 20));
  window.areSlow = false;
  return answer;
};
"""


def test_a_message_that_is_edited_waits_for_its_editor(
    serve, served: Start, browser: Open, gate: Gate
) -> None:
    """Another page sees that it is edited, and cannot steer with it; a page that goes lets it go."""
    serve(shell(gate.command), Text("Done."))
    web = served()
    one, other = browser(web, "pad"), browser(web, "laptop")
    session = web.begin()
    for page in (one, other):
        open_session(page, web, session)
    at_a_gate(web, session, one, gate)
    for text in ("docs", "tests", "changelog"):
        say(web, session, text, "queue")
    other.wait_text("changelog", ".queue")
    one.click('button[aria-label="Edit #2"]')
    one.wait("document.querySelector('.item textarea')")
    other.wait_text("being edited", ".queue")
    off = "document.querySelector(arguments[0]).disabled"
    assert other.run(f"return {off}", 'button[aria-label="Edit #2"]')
    other.click('button[aria-label="Edit #3"]')
    other.wait("document.querySelector('.item textarea')")
    refused = web.ask("PATCH", f"sessions/{session}/queue/2", {"text": "mine"})
    assert (refused.status, refused.data["detail"]) == (409, "#2 is being edited")
    gate.open()
    for page in (one, other):
        page.wait("document.querySelectorAll('.turn-ended').length === 2")  # begin, changelog
        assert page.texts(".said .words") == ["begin", "changelog"]
    one.run("document.querySelector('.item textarea').value = ''")
    one.run(SLOW_ANSWERS)  # the turn begins before the page hears that its text was taken
    one.type(".item textarea", f"better docs{ENTER}")
    other.wait_text("better docs", ".entries")
    other.wait("document.querySelectorAll('.turn-ended').length === 3")
    one.wait("window.areSlow === false")
    assert one.run("return document.querySelector('#input').value") == ""
    one.wait_text("being edited", ".queue")
    other.go("about:blank")
    one.wait("document.querySelectorAll('.turn-ended').length === 4")
    assert one.texts(".said .words") == ["begin", "changelog", "better docs", "tests"]
    assert one.complaints() == []


def test_a_long_queue_is_shown_in_part_and_followed(
    serve, served: Start, browser: Open, gate: Gate, place: Place
) -> None:
    """Its events have only what changed; a page that comes later shows the same."""
    patient = {
        "command": gate.command,
        "timeout": 3_600,
    }  # a busy machine takes minutes for all of it
    serve(Tools([{"tool": "shell", "arguments": patient}], times=1), Text("Done."))
    with (place.home / "config.toml").open("a") as config:
        config.write("[auto_queue]\nmax_queue_size = 200\n")
    web = served()
    one, session = begun(browser, web)
    at_a_gate(web, session, one, gate)
    for number in range(1, 122):
        say(web, session, f"wish {number}", "queue")
    one.wait_text("and 22 more", ".queue-panel")  # with what runs
    other = browser(web, "laptop")
    open_session(other, web, session)
    queue = f"sessions/{session}/queue"
    assert web.ask("DELETE", f"{queue}/3").status == 200
    assert web.ask("PATCH", f"{queue}/122", {"position": 1}).status == 200
    assert web.ask("PATCH", f"{queue}/122", {"text": "the last one"}).status == 200
    for page in (one, other):
        page.wait_text("and 21 more", ".queue-panel")
        page.wait_text("the last one", ".queue")
        assert page.texts(".queue .item-text")[1:3] == ["the last one", "wish 1"]
        assert len(page.texts(".queue .item")) == 100
        page.wait_text("120 waiting", ".panel-head")
    assert one.complaints() == other.complaints() == []


OLD_WHOLE = """return (async () => {
const [{ QueueView }, { SessionView }] =
  await Promise.all(["queue", "session"].map((name) => import(`/assets/${name}.js`)));
const queue = new QueueView("s1", () => {}, () => {});
const item = (text) => ({ id: "m1", number: 1, state: "pending", text, progress: null, user: "" });
const change = (text) =>
  queue.take({ state: "open", count: 1, changed: [{ ...item(text), place: 1 }], removed: [] });
const answers = ["old", "newer"].map((text) => ({ state: "open", items: [item(text)] }));
const asked = [];
window.fetch = async () => {
  asked.push(answers.shift());
  if (answers.length) change("newer");
  return new Response(JSON.stringify(asked.at(-1)), { headers: { "content-type": "application/json" } });
};
const view = { queue, path: "/sessions/s1", onqueue: (whole) => queue.take(whole) };
change("first");
await SessionView.prototype.askQueue.call(view);
return [asked.length, queue.items.map((one) => one.text)];
})()"""


def test_a_queue_that_was_asked_for_undoes_no_change(served: Start, browser: Open) -> None:
    """The answer may be older than a change that came meanwhile: then the page asks once more."""
    page = browser(served())
    assert page.run(OLD_WHOLE) == [2, ["newer"]]


def test_a_subagent_is_shown_asks_answers_and_is_stopped(
    place: Place, serve, served: Start, browser: Open, gate: Gate
) -> None:
    """A person sees what it works at and what it wants to do, reads its conversation, and ends it."""
    two = {"task": "idle about", "name": "idler", "background": True}
    serve(
        Tools(
            [
                {"tool": "delegate", "arguments": {"task": KID, "name": "kid"}},
                {"tool": "delegate", "arguments": two},
            ],
            match="build the report",
            times=1,
        ),
        Tools([{"tool": "shell", "arguments": {"command": "echo 42 > count"}}], match=KID, times=1),
        Tools([gate.call], match="idle about", times=1),
        Text("There are 42."),
    )
    web = served()
    one, session = begun(browser, web)
    say(web, session, "build the report")
    one.wait_text("kid", ".children")
    one.wait_text(KID, ".children")
    asked = "[...document.querySelectorAll('.question')].some("
    asked += "(one) => one.querySelector('h2').textContent === arguments[0])"
    for name in ("kid", "idler"):
        one.wait(asked, f"{name}: May shell run?")
    for name in ("kid", "idler"):
        one.run(
            "[...document.querySelectorAll('.question')].find("
            "(one) => one.querySelector('h2').textContent.startsWith(arguments[0]))"
            ".querySelector('button.accent').click()",
            name,
        )
    gate.wait()
    one.wait("!document.querySelector('.question')")
    one.wait_text("Subagent kid completed", ".entries")
    assert (place.folder / "count").read_text() == "42\n"
    assert one.texts(".child .chip.is-working, .child .chip.is-completed") == [
        "completed",
        "working",
    ]
    one.click('.children button[aria-label="Stop idler"]')
    one.wait_text("Subagent idler cancelled", ".entries")
    one.wait("document.querySelectorAll('.child .icon-button').length === 0")
    one.click('.children a[aria-label="Open kid"]')
    one.wait_text("There are 42.", ".answer")
    one.wait_text("A subagent of its session", ".not-open")
    assert one.complaints() == []


def test_a_cost_has_no_currency(serve, served: Start, browser: Open) -> None:
    """Prices are in whatever currency a person has: the page shows the number that `/usage` does."""
    price = "[models.main.price]\ninput = 10.0\noutput = 100.0\n"
    serve(Text("Done.", usage={"input": 20, "output": 4, "cached": 0}), rest=price)
    web = served()
    one, session = begun(browser, web)
    say(web, session, "go on")
    one.wait_text("cost 0.0006", ".turn-ended")
    one.wait_text("cost0.0006", ".panel .facts")
    used = web.ask("POST", f"sessions/{session}/commands", {"name": "usage", "arguments": {}})
    assert "cost 0.0006" in str(used.data)
    assert "$" not in one.run("return document.body.innerText")


FAKE = """
const [endpoint, p256dh, auth] = arguments;
const told = () => ({ endpoint, keys: { p256dh, auth } });
const made = { endpoint, toJSON: told, unsubscribe: async () => true };
PushManager.prototype.subscribe = async () => (window.pushed = made);
PushManager.prototype.getSubscription = async () => window.pushed || null;
"""


LOOK_AT_NOTICES = (
    "navigator.serviceWorker.ready.then("
    "async (worker) => (window.shown = (await worker.getNotifications())[0]))"
)


@pytest.fixture
def pushed() -> Generator[PushService]:
    """The push service of a browser, ended afterwards."""
    with PushService() as made:
        yield made


def test_a_notice_comes_while_a_question_waits(
    place: Place, serve, served: Start, browser: Open, pushed: PushService
) -> None:
    """The switch subscribes the browser; its worker shows what the host sends."""
    rest = f'[serve]\npush_services = ["{pushed.name}"]'
    serve(Tools([{"tool": "shell", "arguments": {"command": "make"}}]), Text("Done."), rest=rest)
    web = served()
    one, session = begun(browser, web)
    origin = f"http://{web.address}"
    one.allow_notices(origin)
    fake = pushed.subscription()
    one.run(FAKE, fake["endpoint"], fake["p256dh"], fake["auth"])
    one.wait("document.querySelector('.notices:not([hidden])')")
    one.click(".notices input")
    one.wait("document.querySelector('.notices input:checked:not(:disabled)')")
    say(web, session, "build it")
    until(lambda: bool(pushed.told))

    def is_shown() -> bool:  # the browser drops what comes while it starts the worker
        one.push(origin, json.dumps(pushed.told[0][1]))
        return bool(one.run(f"{LOOK_AT_NOTICES}; return Boolean(window.shown)"))

    until(is_shown)
    told = one.run("return [window.shown.title, window.shown.body]")
    assert told == ["build it", "May it run shell? make"]
    one.click(".notices input")
    one.wait("document.querySelector('.notices input:not(:checked):not(:disabled)')")
    assert pushed.name not in (place.home / "state" / "push.json").read_text()
