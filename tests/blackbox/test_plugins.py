"""What installed packages add: the example of docs/plugins.md, built and installed, and broken ones."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.driver import Chat, Gate, Place, finish
from support.model_server import Text, Tools
from support.patience import seconds

from steersman import __version__

PAGE = Path(__file__).parents[2] / "docs" / "plugins.md"
FILE = re.compile(r"^```(?:python|toml)\n# (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WEATHER = {"tool": "weather", "arguments": {"city": "Rome"}}

Attach = Callable[..., Path]


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which pip has built and installed the example of the page."""
    source, target = tmp_path_factory.mktemp("example"), tmp_path_factory.mktemp("site")
    for name, text in FILE.findall(PAGE.read_text("utf-8")):
        (source / name).write_text(text, "utf-8")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    command = [*pip, "--no-build-isolation", "--target", str(target), str(source)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=seconds(110))
    assert ran.returncode == 0, ran.stderr
    return target


@pytest.fixture
def weather(place: Place, example: Path) -> Place:
    """A place in which the example is installed."""
    place.environ["PYTHONPATH"] = str(example)
    return place


@pytest.fixture
def attach(place: Place, tmp_path: Path) -> Attach:
    """Install packages that a test writes: their entry points, and the text of a module each."""
    site = tmp_path / "site"
    place.environ["PYTHONPATH"] = str(site)

    def install(name: str, points: str, text: str = "", folder: Path = site) -> Path:
        info = folder / f"{name}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(points)
        (folder / f"{name}.py").write_text(text)
        return folder

    return install


def listed(place: Place, code: int = 0) -> list[dict[str, Any]]:
    """Return what `plugins list --json` prints."""
    ran = place.run("plugins", "list", "--json")
    assert (ran.returncode, ran.stderr) == (code, "")
    found: list[dict[str, Any]] = json.loads(ran.stdout)["plugins"]
    return [part for part in found if part["distribution"] != "steersman"]


def errors(place: Place) -> dict[str, str]:
    """Return the errors of the plug-ins that cannot be used, by name."""
    return {part["name"]: part["error"] for part in listed(place, 1) if part["state"] == "error"}


def give_tools(place: Place, *names: str) -> None:
    """Let the configured assistant have these tools."""
    file = place.home / "config.toml"
    agent = '[agents.assistant]\nmodel = "main"\n'
    text = file.read_text().replace(agent, f"{agent}tools = {json.dumps(names)}\n")
    file.write_text(text)


# The example --------------------------------------------------------------------------------------


@pytest.mark.checks_data("plugins list")
def test_the_example_is_listed_with_its_package(weather: Place) -> None:
    """Each entry point has its kind, package and version; without packages there is nothing."""
    rows = [
        (part["kind"], part["name"], part["distribution"], part["version"], part["state"])
        for part in listed(weather)
    ]
    package = ("steersman-weather", "1.0", "ok")
    assert rows == [
        ("tools", "weather", *package),
        ("models", "parrot", *package),
        ("agents", "forecaster", *package),
        ("commands", "umbrella", *package),
        ("gateways", "once", *package),
        ("hooks", "turn_ended.weather", *package),
    ]
    table = weather.run("plugins", "list")
    shown = PAGE.read_text().split("$ steersman plugins list\n")[1].split("\n\n")[0]
    assert [line.split() for line in table.stdout.splitlines()] == [
        line.split() for line in shown.splitlines()
    ]
    (finding,) = [
        check for check in weather.data("doctor")["checks"] if check["name"] == "plug-ins"
    ]
    assert finding["verdict"] == "ok"
    assert finding["text"] == f"9 of steersman-weather 1.0, steersman {__version__}"
    del weather.environ["PYTHONPATH"]
    assert listed(weather) == []


def test_an_agent_that_lists_an_installed_tool_is_asked_about_it(weather: Place, serve) -> None:
    """The model sees it, a person is asked, its result comes back; `/tools` names its package."""
    server = serve(Tools([WEATHER]), Text("Take a hat."))
    give_tools(weather, "weather")
    chat = weather.chat()
    question = chat.causes("Rome?", "question")
    assert (question["tool"], question["arguments"]) == ("weather", {"city": "Rome"})
    chat.answer(question, "allow")
    assert chat.wait("progress")["total"] == 1
    assert chat.wait("tool_ended")["output"] == "Rome: sunny"
    chat.wait("turn_ended", status="completed")
    (tool,) = chat.ask("/tools")["data"]["tools"]
    assert (tool["name"], tool["from"], tool["do"]) == ("weather", "steersman-weather 1.0", "ask")
    assert chat.close() == 0
    (offered,) = server.requests[0].body["tools"]
    assert offered["function"]["parameters"]["properties"]["city"]["type"] == "string"
    assert server.requests[1].body["messages"][-1]["content"] == "Rome: sunny"


@pytest.mark.nightly
def test_a_rule_allows_an_installed_tool_and_an_agent_without_it_has_it_not(
    weather: Place, serve
) -> None:
    """A rule names it like any tool; one who does not list it is not offered it."""
    rule = '[permissions]\nrules = [{ tool = "weather", do = "allow" }]\n'
    server = serve(Tools([WEATHER]), Text("Fine."), Text("Hello."), rest=rule)
    give_tools(weather, "weather")
    ran = weather.run("chat", "Rome?")
    assert (ran.returncode, ran.stdout) == (0, "Fine.\n")
    assert server.requests[1].body["messages"][-1]["content"] == "Rome: sunny"
    file = weather.home / "config.toml"
    file.write_text(file.read_text().replace('tools = ["weather"]\n', ""))
    assert weather.run("chat", "Hello").returncode == 0
    names = {tool["function"]["name"] for tool in server.requests[-1].body["tools"]}
    assert "read" in names
    assert "weather" not in names


@pytest.mark.nightly
def test_a_session_is_resumed_with_its_installed_tool(weather: Place, serve) -> None:
    """The tool is there again; when its package is gone, a notice says so and the session goes on."""
    server = serve(Text("One."), Text("Two."), Text("Three."))
    give_tools(weather, "weather", "read")
    assert weather.run("chat", "1").returncode == 0
    assert weather.run("chat", "--continue", "2").returncode == 0
    assert [tool["function"]["name"] for tool in server.requests[1].body["tools"]] == [
        "weather",
        "read",
    ]
    del weather.environ["PYTHONPATH"]
    file = weather.home / "config.toml"
    file.write_text(file.read_text().replace('"weather", ', ""))
    ran = weather.run("chat", "--continue", "3")
    assert (ran.returncode, ran.stdout) == (0, "Three.\n")
    assert "The session's tools `weather` are not there any more" in ran.stderr
    assert [tool["function"]["name"] for tool in server.requests[2].body["tools"]] == ["read"]


@pytest.mark.nightly
def test_an_installed_provider_answers(weather: Place) -> None:
    """By `--model NAME:MODEL`, and as `provider` of a configured model."""
    ran = weather.run("chat", "--model", "parrot:Polly", "Hello")
    assert (ran.returncode, ran.stdout) == (0, "Polly says: Hello\n")
    weather.configure("", provider="parrot")
    ran = weather.run("chat", "Hello")
    assert (ran.returncode, ran.stdout) == (0, "test-model says: Hello\n")
    ran = weather.run("chat", "--model", "parot:Polly", "Hello")
    assert ran.returncode == 2
    assert "parrot:MODEL" in ran.stderr


@pytest.mark.nightly
def test_an_installed_agent_has_no_authority(weather: Place) -> None:
    """It works under its name, its tool is asked about, and what it denies is denied."""
    chat = weather.chat("--agent", "forecaster")
    question = chat.causes("How is it in Rome", "question")
    assert question["tool"] == "weather"
    rules = chat.ask("/permissions")["data"]["rules"]
    assert (rules[0]["tool"], rules[0]["do"]) == ("shell", "deny")
    assert [rule for rule in rules if rule["tool"] == "weather"] == []
    chat.answer(question, "allow")
    chat.wait("turn_ended", status="completed")
    assert chat.close() == 0
    ran = weather.run("chat", "--continue", "--yes", "How is it in Oslo")
    assert ran.stdout == "parrot says: Oslo: sunny\n"


def test_an_installed_command_is_a_command_everywhere(weather: Place) -> None:
    """It is typed or sent as data, listed by `/help`, and sends its message to the session."""
    chat = weather.chat("--model", "parrot")
    chat.send("/umbrella Rome", {"command": "umbrella", "arguments": {"text": "Oslo"}})
    chat.send("/umbrella", "/help umbrella", "/umbrela Rome")
    assert chat.close() == 0
    asked = [event["text"] for event in chat.seen("accepted") if event["as"] in ("turn", "queue")]
    assert asked == ["Does it rain in Rome", "Does it rain in Oslo"]
    assert len(chat.seen("turn_ended", status="completed")) == 2
    replies = [(event["ok"], event["text"]) for event in chat.seen("result", name="umbrella")]
    done = (True, "Asked in project.")
    assert replies == [done, done, (False, "where?; /umbrella CITY")]
    (shown,) = chat.seen("result", name="help")[0]["data"]["commands"]
    assert shown["doc"] == "A command of steersman-weather 1.0."
    assert "did you mean `/umbrella`?" in chat.seen("rejected")[0]["hint"]


@pytest.mark.nightly
@pytest.mark.checks_data("gateway list", "gateway run")
def test_an_installed_hook_and_gateway_run(weather: Place) -> None:
    """The gateway prints the answer to what its table says; the hook has seen the turn."""
    ran = weather.run("gateway", "run", "once")
    assert (ran.returncode, ran.stdout) == (0, "parrot says: Rome: sunny\n"), ran.stderr
    (weather.home / "config.toml").write_text('[gateways.once]\nquestion = "How is it in Oslo"\n')
    ran = weather.run("gateway", "run", "once")
    assert (ran.returncode, ran.stdout) == (0, "parrot says: Oslo: sunny\n"), ran.stderr
    turns = (weather.folder / "turns.txt").read_text().splitlines()
    assert [line.split()[1] for line in turns] == ["completed", "completed"]
    gateways = weather.data("gateway", "list")["gateways"]
    assert {gateway["name"]: gateway["is_configured"] for gateway in gateways} == {
        "irc": False,
        "matrix": False,
        "telegram": False,
        "once": True,
    }
    ran = weather.run("gateway", "run", "onec")
    assert ran.returncode == 2
    assert "did you mean `once`?" in ran.stderr


# What is broken -----------------------------------------------------------------------------------

BROKEN = """
[steersman.tools]
gone = not_there:tool
plain = acme:plain
untyped = acme_untyped:tool
other = acme:good
read = acme:good
mcp__x = acme:good
good = acme:good
no-place = acme good
[steersman.models]
model = acme:nothing
[steersman.agents]
rude = acme:rude
[steersman.commands]
short = acme:short
Loud = acme:short
[steersman.gateways]
sync = acme:short
[steersman.hooks]
turn_ends = acme:short
turn_ended.exits = acme_exit:hook
[steersman.unknown]
x = acme:good
"""
ACME = """
import steersman

@steersman.tool
def good(n: int) -> int:
    "Return it."
    return n

def plain(n: int) -> int:
    return n

def nothing():
    return None

def short(one):
    raise ValueError("\\x1b[31mred\\nsecond line")

rude = steersman.Agent("rude", permissions={"shell": "allow"})
"""


@pytest.mark.nightly
def test_whatever_is_broken_is_one_sentence(place: Place, attach: Attach) -> None:
    """Imports that fail, wrong types, taken names and bad lines are named; the others are ok."""
    attach("acme", BROKEN, ACME)
    attach("acme_untyped", "", "import steersman\n\n@steersman.tool\ndef tool(n):\n    return n\n")
    attach("acme_exit", "", "import sys\nsys.exit(3)\n")
    found = errors(place)
    events = "there is no event `turn_ends`; did you mean `turn_ended`?"
    assert found == {
        "gone": "ModuleNotFoundError: No module named 'not_there'",
        "plain": "it is a `function`, and no `steersman.FunctionTool`",
        "untyped": "UsageError: tool `tool`: parameter `n` has no type (acme_untyped.py:3)",
        "other": "its own name is `good`, which is another one",
        "read": "the name is that of a built-in tool",
        "mcp__x": "names that begin with `mcp__` are for MCP servers",
        "no-place": "it is not of the form `name = package.module:object`",
        "model": "it cannot be called with (config): too many positional arguments",
        "rude": "its permissions say `allow` of `shell`: an installed agent may only deny",
        "short": "it cannot be called with (context, text): too many positional arguments",
        "Loud": "a command's name has the letters a-z and `-` only",
        "sync": "it cannot be called with (home, settings): too many positional arguments",
        "turn_ends": events,
        "turn_ended.exits": "SystemExit: 3 (acme_exit.py:2)",
    }
    table = place.run("plugins", "list")
    assert table.returncode == 1
    assert (
        "tool `gone` of acme 1.0 (`gone = not_there:tool`) cannot be used: ModuleNotFoundError: "
        "No module named 'not_there'; update or uninstall `acme`; `steersman plugins list` shows all"
    ) in table.stdout.splitlines()
    doctor = json.loads(place.run("doctor", "--json").stdout)
    warned = [check for check in doctor["checks"] if check["name"] == "plug-ins"]
    assert [event["verdict"] for event in warned] == [*["warn"] * len(found), "ok"]


@pytest.mark.nightly
def test_a_chat_works_on_without_what_is_broken(place: Place, attach: Attach, serve) -> None:
    """A broken tool is a notice and is not offered, a command's error its reply, a hook's a notice."""
    points = """
[steersman.tools]
good = acme:good
gone = not_there:tool
[steersman.commands]
fails = acme:fails
gone = not_there:command
[steersman.hooks]
turn_ended.gone = not_there:hook
"""
    attach("acme", points, f"{ACME}\ndef fails(context, text):\n    short(text)\n")
    server = serve(Text("Hello."), Text("Again."))
    give_tools(place, "good", "gone")
    chat = place.chat()
    broken = (
        "tool `gone` of acme 1.0 (`gone = not_there:tool`) cannot be used: ModuleNotFoundError: No "
        "module named 'not_there'; update or uninstall `acme`; `steersman plugins list` shows all"
    )
    assert chat.wait("notice", text=broken)
    failed = chat.ask("/fails now")
    assert (failed["ok"], failed["text"].partition(";")[0]) == (
        False,
        "command `fails` of acme 1.0 (`fails = acme:fails`) failed: "
        "ValueError: \x1b[31mred second line (acme.py:16)",
    )
    assert "No module named 'not_there'" in chat.ask("/gone")["text"]
    chat.completes("Hi")
    assert chat.close() == 0
    assert chat.wait(
        "notice", text=lambda text: text.startswith("The hook `turn_ended.gone` of acme")
    )
    (offered,) = server.requests[0].body["tools"]
    assert offered["function"]["name"] == "good"
    ran = place.run("chat", "--plain", said="/fails\n")
    assert "\x1b" not in ran.stdout + ran.stderr
    assert r"\x1b[31mred" in ran.stdout + ran.stderr


@pytest.mark.nightly
def test_two_packages_that_give_one_name_are_both_refused(
    place: Place, attach: Attach, serve
) -> None:
    """Each names the other; the agent does without the tool, and what is configured goes first."""
    attach("acme", "[steersman.tools]\ngood = acme:good\n", ACME)
    attach("brand", "[steersman.tools]\ngood = brand:good\n", ACME)
    assert [(part["distribution"], part["error"]) for part in listed(place, 1)] == [
        ("acme", "brand 1.0 has a tool of this name, too"),
        ("brand", "acme 1.0 has a tool of this name, too"),
    ]
    own = '[[tool]]\nname = "good"\ndescription = "Mine."\nrun = ["true"]\n'
    server = serve(Text("Hello."), Text("Again."))
    give_tools(place, "good")
    ran = place.run("chat", "Hi")
    assert ran.stdout == "Hello.\n"
    assert "brand 1.0 has a tool of this name, too; uninstall `acme` or the other one" in ran.stderr
    assert "tools" not in server.requests[0].body
    with (place.home / "config.toml").open("a") as file:
        file.write(own)
    ran = place.run("chat", "Hi")
    assert "good" not in ran.stderr
    assert server.requests[1].body["tools"][0]["function"]["description"] == "Mine."


def test_a_model_or_agent_that_is_broken_ends_the_command(place: Place, attach: Attach) -> None:
    """With exit code 2 and the sentence; one that makes no model, too."""
    points = "[steersman.models]\nempty = acme:empty\n[steersman.agents]\nrude = acme:rude\n"
    attach("acme", points, f"{ACME}\ndef empty(config):\n    return config\n")
    ran = place.run("chat", "--model", "empty", "Hi")
    assert ran.returncode == 2
    assert "provider `empty` of acme 1.0 (`empty = acme:empty`) cannot be used" in ran.stderr
    assert "it made a `ModelConfig`, which has no `answer`" in ran.stderr
    ran = place.run("chat", "--agent", "rude", "Hi")
    assert ran.returncode == 2
    assert "an installed agent may only deny" in ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.mark.nightly
@pytest.mark.parametrize("how", ["installed", "python -m", "an open path"])
def test_a_project_folder_adds_nothing(place: Place, attach: Attach, serve, how: str) -> None:
    """Not by `python -m`, nor by an empty part of PYTHONPATH; and its modules are not taken for ours."""
    folder = place.folder
    seen = folder / "seen"
    text = f"open({str(seen)!r}, 'w').close()\ndef run(context, text=''):\n    return 'evil'\n"
    attach("acme", "[steersman.hooks]\nturn_ended.acme = acme:run\n", "def run(event):\n    pass\n")
    points = (
        "[steersman.commands]\nevil = evil:run\n[steersman.hooks]\nturn_ended.evil = evil:run\n"
    )
    attach("evil", points, text, folder)
    program: tuple[str, ...] = ()
    if how == "installed":
        (folder / "steersman").mkdir()
        (folder / "steersman" / "__init__.py").write_text(text)
    elif how == "python -m":
        (folder / "typer.py").write_text(text)
        program = (sys.executable, "-m", "steersman", "chat", "--json")
    else:
        place.environ["PYTHONPATH"] += ":.:"
    (folder / "acme.py").write_text(text)
    serve(Text("Hello."))
    chat = Chat(place, program) if program else place.chat()
    place.chats.append(chat)
    assert chat.causes("/evil now", "rejected")["reason"] == "unknown_command"
    chat.completes("Hi")
    assert chat.close() == 0
    hooks = place.stored()["hooks"]
    assert [(hook["event"], hook["exit_code"]) for hook in hooks] == [("turn_ended", 0)]
    assert not seen.exists()


def test_an_isolated_tool_is_that_of_the_package(place: Place, attach: Attach, serve) -> None:
    """Its process imports the installed module, and none of the same name in the project."""
    text = """import os, steersman

@steersman.tool(isolated=True)
def where(parent: int) -> str:
    "Say whether it runs elsewhere."
    return f"installed, {os.getpid() != parent}"
"""
    attach("acme", "[steersman.tools]\nwhere = acme:where\n", text)
    (place.folder / "acme.py").write_text(text.replace("installed", "planted"))
    call = {"tool": "where", "arguments": {"parent": 0}}
    server = serve(Tools([call]), Text("Fine."))
    give_tools(place, "where")
    ran = place.run("chat", "--yes", "Where?")
    assert (ran.returncode, ran.stdout) == (0, "Fine.\n"), ran.stderr
    assert server.requests[1].body["messages"][-1]["content"] == "installed, True"


def test_a_tool_that_an_agent_brings_is_asked_about(place: Place, attach: Attach) -> None:
    """An agent's own functions are asked about like any other; a pattern of a rule allows them."""
    model = """
class Caller:
    name = "caller"
    async def answer(self, request, listener):
        if request.messages[-1].role == "user":
            call = steersman.ToolRequest(call=f"{request.call_prefix}1", tool="good", arguments={"n": 7})
            return steersman.ModelAnswer(text="", tool_calls=(call,), stop_reason="tools")
        return steersman.ModelAnswer(text="Done.")
    async def window(self):
        return 0
    async def aclose(self):
        pass

bringer = steersman.Agent("bringer", model=Caller(), tools=[good])
"""
    attach("acme", "[steersman.agents]\nbringer = acme:bringer\n", ACME + model)
    chat = place.chat("--agent", "bringer")
    assert chat.causes("Go", "question")["tool"] == "good"
    assert chat.close() == 0
    assert chat.wait("tool_ended")["status"] != "ok"
    rule = '[permissions]\nrules = [{ tool = "goo*", do = "allow" }]\n'
    (place.home / "config.toml").write_text(rule)
    chat = place.chat("--agent", "bringer")
    assert chat.causes("Go", "tool_ended")["output"] == "7"
    assert chat.close() == 0


def test_a_hook_of_another_agent_imports_nothing_from_its_project(place: Place) -> None:
    """Where a project has a package `steersman`, ours runs the hooks all the same."""
    gate = Gate(place.folder)
    hook = f'[[hooks]]\non = "session_start"\nrun = ["sh", "-c", "{gate.command}"]\n'
    (place.home / "config.toml").write_text(hook)
    (place.folder / "steersman").mkdir()
    (place.folder / "steersman" / "__init__.py").write_text("open('seen', 'w').close()\n")
    said = json.dumps({"session_id": "s1", "cwd": str(place.folder)})
    ran = place.run("hooks", "emit", "claude", "session-start", said=said)
    assert (ran.returncode, ran.stdout) == (0, "{}\n")
    gate.wait()
    gate.open()
    gate.close()
    assert not (place.folder / "seen").exists()


@pytest.mark.nightly
def test_a_gateway_ends_by_a_signal_in_order(place: Place, attach: Attach, serve) -> None:
    """Its session is saved, not crashed; an error of its own is a sentence."""
    text = """
import asyncio
async def stay(home, settings):
    session = await home.start()
    await session.ask("Hi")
    print("ready", flush=True)
    await asyncio.Event().wait()
async def fail(home, settings):
    raise RuntimeError("the line is dead")
"""
    attach("acme", "[steersman.gateways]\nstay = acme:stay\nfail = acme:fail\n", text)
    serve(Text("Hello."))
    gateway = place.start("gateway", "run", "stay")
    assert gateway.stdout is not None
    assert gateway.stdout.readline() == "ready\n"
    gateway.send_signal(signal.SIGTERM)
    ended = finish(gateway)
    assert (ended.returncode, ended.stderr) == (143, "")
    (row,) = place.data("sessions", "list")["sessions"]
    assert row["state"] == "left"
    failed = place.run("gateway", "run", "fail")
    assert failed.returncode == 2
    assert "gateway `fail` of acme 1.0 (`fail = acme:fail`) failed: RuntimeError: the line is" in (
        failed.stderr
    )
    assert "Traceback" not in failed.stderr


STORE = """
from steersman.journal.memory import MemoryStore  # stands in for a database

def make(url):
    print("opened", url)
    return MemoryStore()

def wrong(url):
    return url
"""
PROGRAM = """
import asyncio, steersman
from steersman.testing import ScriptedModel

async def main():
    async with steersman.open("acme://there/home") as home:
        session = await home.start(steersman.Agent(model=ScriptedModel(["Hello."])))
        print((await session.ask("Hi")).text, len(home.sessions()))
    for url in ("wrong://x", "none://x"):
        try:
            async with steersman.open(url):
                pass
        except steersman.SteersmanError as error:
            print(type(error).__name__, error.message)

asyncio.run(main())
"""


@pytest.mark.nightly
def test_a_home_is_opened_by_an_installed_store(place: Place, attach: Attach) -> None:
    """By the scheme of its URL; nothing of the sessions is in the local database."""
    site = attach("acme", "[steersman.stores]\nacme = acme:make\nwrong = acme:wrong\n", STORE)
    program = site / "program.py"
    program.write_text(PROGRAM)
    ran = subprocess.run(
        [sys.executable, str(program)],
        cwd=place.folder,
        env=place.environ,
        capture_output=True,
        text=True,
        timeout=seconds(60),
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.splitlines() == [
        "opened acme://there/home",
        "Hello. 1",
        "PlugInError store `wrong` of acme 1.0 (`wrong = acme:wrong`) cannot be used: "
        "it made a `str`, which has no `nodes`",
        "UsageError no store is installed for `none:`",
    ]
    assert place.data("sessions", "list")["sessions"] == []


@pytest.mark.nightly
def test_an_installed_store_needs_no_package_of_another(place: Place, attach: Attach) -> None:
    """The doctor looks at its home, and a home moves to it, also where PostgreSQL's extra is missing."""
    site = attach("acme", "[steersman.stores]\nacme = acme:make\n", STORE)
    (site / "psycopg.py").write_text('raise ModuleNotFoundError(name="psycopg")\n')
    url = "acme://there/home"
    moved = place.run("home", "move", "--to", url)
    assert (moved.returncode, moved.stderr) == (0, "")
    assert f'[home] url = "{url}"' in moved.stdout
    place.environ["STEERSMAN_HOME_URL"] = url
    assert url in place.run("doctor", "--home").stdout.splitlines()[-1]
