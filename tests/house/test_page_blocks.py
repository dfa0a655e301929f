"""Each block of code in the README and docs/ is tried, here or where it is said; the others say why not.

A block of TOML is read as the file that it is of, JSON and YAML are parsed, Python is run by the test of
its page, and commands are typed in a home with a session. A screen has no marks of any of these.
"""

import json
import re
import shlex
import sys
import tomllib
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import pytest
from house.test_hints import fault
from ruamel.yaml import YAML
from support import many_commands
from support.driver import Place
from support.executed import executed
from support.patience import seconds

from steersman.gateway.commands.registry import NAMES
from steersman.workflows.config import load
from steersman.workflows.flow.reading import load_workflow
from steersman.workflows.paths import Paths

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"(?:\A|\n\n)((?: {4}.*(?:\n|\Z)|\n(?= {4}))+)")
COMMAND = re.compile(r"^(?:\$ |TOKEN=\$\(|git diff \| )?steersman((?: .*)?)$", re.MULTILINE)
ELSEWHERE = {
    ("python", "gateways.md"): "tests/blackbox/test_gateways.py",
    ("python", "library.md"): "tests/library/test_page.py",
    ("python", "plugins.md"): "tests/blackbox/test_plugins.py",
    ("python", "simulation.md"): "tests/simulation/test_agents.py",
    ("console", "library.md"): "tests/library/test_page.py",
    ("toml", "configuration.md"): "docs/generate.py",
    ("text", "command-line.md"): "docs/generate.py",
}
"""The pages whose blocks of a kind are run, with what they print, by a test of their own."""
OTHER_FILES = {
    "# pyproject.toml": "of a plug-in: the tests of plugins.md and gateways.md build it",
    "# quiet.toml": "a routing table: `make docs` runs the commands about it",
    "# rude.toml": "a routing table that is refused: `make docs` runs the commands about it",
    "# broken.toml": "a workflow with mistakes: `make docs` runs the command that reports them",
    '[agent]\nname = "mine"': "of an agent's definition: tests/cli/test_external_agents.py reads all",
    '["native tools"]': "of the benchmark of work: tests/house/test_bench_work.py reads variants",
    "[models.main.price]": "a part of a model: the table of the model stands above",
    "[[answer]]": "of a scripted model, as in many tests",
    '[[step]]\nid = "count"': "a step, without the one that it needs",
    '[[step]]\nid = "render"': "a step, without the one that it needs",
}
"""Blocks of TOML that are neither a configuration nor a workflow, by how they begin, and why."""
NOT_TYPED = {
    r"chat( --json| --agent \w+)?$|tour|attach|setup": "talks to a person or a program until it is ended",
    r"serve( --port \d+)?$|node( --.*)?$|gateway run|.*--watch": "runs until it is ended",
    r"serve (un)?install": "asks the system's service manager: tests/blackbox/test_serve.py has one",
    r"gateway check": "connects to a server: tests/blackbox/test_gateways.py has one",
    r"home init|run render.toml --on|.*--endpoint": "needs a server or a cluster, as in tests/extensions",
    r"restore run": "starts another agent's program",
    r"run (tidy|review|codemod|fix-tests|research|--resume)": "needs its project: blackbox/test_run.py",
    r"chat --(agent forecaster|model parrot)|plugins list": "needs a package: blackbox/test_plugins.py",
    r"sessions (export|import) .*--sign|sessions (verify|diff) .*(\b[0-9a-f]{8}\b|--heads)": "needs a "
    "key, two sessions, or what was kept: tests/cli/test_session_changes.py, blackbox/test_twins.py",
    r"mcp import": "needs another program's file: tests/extensions/mcp/test_import.py has some",
    r"mcp login": "needs a server and a person: tests/extensions/mcp/test_oauth.py",
    r"simulate (fix-tests|fragile.toml)": "takes long, or needs a file: tests/blackbox/test_simulate.py",
}
"""Commands that are not typed here, by how they go on after `steersman`, and why."""


def blocks() -> Iterator[tuple[str, str, str]]:
    """Yield each block with its page and its kind."""
    for page in PAGES:
        text = page.read_text("utf-8")
        for kind, block in FENCE.findall(text):
            yield page.name, kind or "screen", block
        for found in INDENTED.findall(FENCE.sub("", text)):
            block = re.sub("^ {4}", "", found, flags=re.MULTILINE).lstrip("\n")
            yield page.name, kind_of(block), block


def kind_of(block: str) -> str:
    """Tell what a block without a mark is by its first line."""
    if re.match(r"\[+[\w.\" ]+\]+\s|rules = ", block):
        return "toml"
    if re.match(r"\{\"", block):
        return "json"
    if re.match(r"/\w", block):
        return "slash"
    if re.match(r"@steersman", block):
        return "python"
    return "console" if re.match(r"(\$ )?[a-zA-Z]+[ =\n]", block) else "screen"


BLOCKS = list(dict.fromkeys(blocks()))


def of_kind(kind: str) -> list[tuple[str, str]]:
    """List the blocks of a kind that no other test runs."""
    found = [(page, block) for page, is_of, block in BLOCKS if is_of == kind]
    assert found
    return [(page, block) for page, block in found if (kind, page) not in ELSEWHERE]


def test_every_block_is_of_a_kind() -> None:
    """A new kind of block needs a way to try it; a page that is tested elsewhere is named there."""
    kinds = {"console", "json", "mermaid", "python", "screen", "slash", "text", "toml", "yaml"}
    assert {kind for _, kind, _ in BLOCKS} == kinds
    for (_, page), test in ELSEWHERE.items():
        assert f'"{page}"' in (ROOT / test).read_text("utf-8"), test


PYTHON = """
import ast, asyncio, steersman, sys
block = compile(sys.stdin.read(), "block", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
asyncio.run(eval(block, {"steersman": steersman}))
"""


def test_python_runs(place: Place) -> None:
    """A block that is no whole program runs, too, with a scripted model."""
    ((page, block),) = of_kind("python")
    assert page == "overview.md"
    scripted(
        place, '[[answer]]\ntool_calls = [{ tool = "weather", arguments = { city = "Rome" } }]'
    )
    run = executed([sys.executable, "-c", PYTHON], cwd=place.folder, env=place.environ, input=block)
    assert (run.stdout, run.stderr) == ("Done.\n", "")


@pytest.mark.parametrize(("page", "block"), of_kind("toml"), ids=lambda word: word[:30])
def test_toml_is_read_as_its_file(page: str, block: str, tmp_path: Path) -> None:
    """A configuration loads, a workflow is without mistakes; what is neither is listed."""
    data = tomllib.loads(block)
    if any(block.startswith(begin) for begin in OTHER_FILES):
        return
    if "workflow" in data:
        (tmp_path / "file.toml").write_text(block, "utf-8")
        load_workflow(tmp_path / "file.toml")
        return
    if "rules" in data:
        block = f"[permissions]\n{block}"
    (tmp_path / "config.toml").write_text(block, "utf-8")
    environ = {"STEERSMAN_HOME": str(tmp_path), "HOME": str(tmp_path)}
    load(Paths.of(environ), tmp_path, environ)


def test_every_exception_is_needed() -> None:
    """None is left of a block or a command that is gone."""
    tomls, typed = (
        [block for _, block in of_kind("toml")],
        [" ".join(words) for words in commands()],
    )
    assert [
        begin
        for begin in OTHER_FILES
        if not any(map(begin.__eq__, (b[: len(begin)] for b in tomls)))
    ] == []
    assert [rule for rule in NOT_TYPED if not any(re.match(rule, line) for line in typed)] == []


def test_json_and_yaml_are_parsed() -> None:
    """Each line of a block of JSON is one document."""
    for _, block in of_kind("json"):
        for line in block.splitlines():
            assert isinstance(json.loads(line), dict)
    for _, block in of_kind("yaml"):
        assert YAML(typ="safe").load(block)


def test_slash_commands_are_some() -> None:
    """Each line begins with the name of a command."""
    for page, block in of_kind("slash"):
        for line in block.splitlines():
            if line.startswith("/"):
                assert re.split(r"[ /]", line)[1] in NAMES, f"{page}: {line}"


def test_targets_of_make_are_some() -> None:
    """What stands behind `make` is in the Makefile."""
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    named = {
        name
        for _, block in of_kind("console")
        for name in re.findall(r"^make ([\w-]+)", block, re.M)
    }
    assert {"chat", "test"} <= named <= targets


def words_of(line: str) -> list[str]:
    """Split a line as a shell does, up to a pipe, a redirection or a remark."""
    lexer = shlex.shlex(re.sub(r"\s{2,}(?!-).*", "", line), posix=True, punctuation_chars="|<>()")
    lexer.whitespace_split = True
    return list(takewhile(lambda word: word not in ("|", "<", ">", ")"), lexer))


def commands() -> list[list[str]]:
    """List the words of the commands in blocks, in their order, without `steersman`."""
    texts = [
        block.replace("\\\n", " ") for kind in ("console", "text") for _, block in of_kind(kind)
    ]
    lines = [line for text in texts for line in COMMAND.findall(text) if "[--" not in line]
    return [list(words) for words in dict.fromkeys(tuple(words_of(line)) for line in lines)]


def test_every_command_can_be_typed() -> None:
    """The command line has it, and takes its options and arguments."""
    lines = [shlex.join(["steersman", *words]) for words in commands()]
    assert len(lines) > 80
    assert {line: why for line in lines if (why := fault(line))} == {}


def scripted(place: Place, first: str = "") -> None:
    """Configure a model that answers `Done.`, after what it does first."""
    script = place.home / "answers.toml"
    script.write_text(f"{first}\n" + '[[answer]]\ntext = "Done."\n' * 60, "utf-8")
    place.configure("", provider="scripted", model=f'script = "{script}"')


GIVEN = {"ID": "last", "[N]": "1", "[N": "1", "[ID]": "last", "[ID": "last", "DIR": "."}
GIVEN |= {"TOOL": "shell", "TEXT": "ls", "FILE": "saved.toml"}
"""What is typed for the words that stand for something."""
REFUSED = {
    "queue steer 2|sessions answer|node evict": "open",
    "queue (resume|restore|discard)": "",
    "queue keep": "is not offered",
    "sessions import --from": "keeps nothing",
    "sessions import": "another session",
    "sessions delete": "nothing was deleted",
    "send last also": "finalized",
    "sessions replay last --answer": "there was no question",
    "trust$": "nobody can be asked",
    "sessions trace last": "no collector",
    "home trash restore": "is not in the trash",
    "home trash empty|uninstall$": "was",
    "node drain": "there is no node",
    "serve status": '"serving": false',
    "serve stop": "no program serves this home",
    "inspect last --(at|diff)": "session",
    "workflow check broken.toml": "faults",
    "routes check rude.toml": "rude",
}
"""Commands that end with 1 or 2 in this home, and what they say: all others end with 0."""


@pytest.mark.nightly
@pytest.mark.timeout(300)
def test_every_command_runs(place: Place) -> None:
    """In a home with a session, a queue and the files of the pages each ends, and does its work."""
    scripted(place)
    for _, block in of_kind("toml"):
        if named := re.match(r"# (?!config|pyproject)(\w+\.toml)\n", block):
            (place.folder / named[1]).write_text(block, "utf-8")
    (place.folder / "notes.txt").write_text("a note", "utf-8")
    (place.home.parent / ".claude").mkdir()
    for words in (
        ("chat", "--yes", "hi"),
        ("chat", "--continue", "what of the streaming parser?"),
        ("chat", "--continue", "and now?"),
        *(("queue", "add", text) for text in ("one", "two", "three")),
        ("sessions", "export", "last", "notes.json"),
    ):
        assert place.run(*words).returncode == 0
    typed = [
        [GIVEN.get(word, word) for word in words]
        for words in commands()
        if not any(re.match(rule, " ".join(words)) for rule in NOT_TYPED)
    ]
    run = executed(
        [sys.executable, many_commands.__file__, str(int(seconds(20)))],
        cwd=place.folder,
        env={**place.environ, "COLUMNS": "200"},
        input=json.dumps(typed),
        timeout=seconds(250),
    )
    assert run.returncode == 0, run.stderr
    wrong = list[str]()
    for words, result in zip(typed, json.loads(run.stdout), strict=True):
        line, code, output = " ".join(words), result["code"], result["output"]
        says = next((says for rule, says in REFUSED.items() if re.match(rule, line)), None)
        is_refused = says is not None and code in (1, 2) and says in output
        if "Traceback" in output or (code != 0 and not is_refused):
            wrong.append(f"{code}: steersman {line}: {output[-200:]}")
    assert not wrong, "\n".join(wrong)
