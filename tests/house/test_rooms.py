"""Which room may use which, and what no room may do."""

import ast
import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from steersman.workflows.agent_definition import HOOK_FORMATS
from steersman.workflows.plugins import GATEWAYS
from steersman.workflows.providers import PROVIDERS
from steersman.workflows.registry import EXTENSIONS

PURE = {"threading", "time", "random", "uuid", "subprocess", "socket", "pykka", "asyncio", "os"}
DECIDING = PURE - {"pykka", "asyncio", "os"}
RUNTIME = {
    "actors/termination.py",
    "actors/kernel/dispatcher.py",
    "actors/runtime.py",
}  # threads and a clock
EDGES = {  # where any error must end
    "actors/kernel/actor.py",
    "actors/kernel/dispatcher.py",
    "cli/program.py",
    "ports/tools/function.py",  # the function is the program's own
    "simulator/play.py",
    "workflows/plugins.py",  # of code that others wrote
}
MOST_METHODS, MOST_ATTRIBUTES, DEEPEST = 50, 10, 4  # of a class, with its bases in the same room
MOST_OF_AN_INTERFACE = 40  # methods, in the rooms that people and programs come through


@cache
def imports(module: Any) -> tuple[str, ...]:
    """List what a module imports, relative ones as a path from the root."""
    return tuple(_imports(module))


def _imports(module: Any) -> Iterator[str]:
    here = Path(module.name).parent
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module or ""
        elif isinstance(node, ast.ImportFrom):
            base = here.joinpath(*[".."] * (node.level - 1), *(node.module or "").split("."))
            parts: list[str] = []
            for part in base.parts:
                parts = parts[:-1] if part == ".." else [*parts, part]
            names = [""] if node.module else [alias.name for alias in node.names]
            yield from ("/".join([".", *parts, name]).rstrip("/") for name in names)


def test_arrows_point_one_way(modules: list[Any], rooms: tuple[str, ...]) -> None:
    """A room imports itself and the rooms below it, relatively."""
    for module in modules:
        below = rooms[: rooms.index(module.room) + 1]
        for name in imports(module):
            assert not name.startswith("steersman"), f"{module.name} imports {name} absolutely"
            used = name.split("/")[1] if name.startswith("./") else ""
            assert used not in rooms or used in below, f"{module.name} imports {name}"


CORE = {"machines", "journal", "actors"}
SATELLITES = {"proofs", "restore", "simulator"}
"""Rooms without which a session runs."""


def test_a_session_runs_without_satellites(modules: list[Any]) -> None:
    """What a session needs to live imports nothing of what it does not need."""
    for module in modules:
        used = {name.split("/")[1] for name in imports(module) if name.startswith("./")}
        assert module.room not in CORE or not used & SATELLITES, f"{module.name} imports {used}"


MOST_TO_READ = 3_500
"""Lines that one reads to change how a message is routed, queued and stopped."""


def test_what_is_to_be_read_first_is_short(root: Path) -> None:
    """The page names what to read before the heart of the program is changed: an evening, not a week."""
    page = (root / "docs" / "architecture.md").read_text()
    section = page.partition("### What to read")[2].partition("\n## ")[0]
    names = re.findall(r"\]\(\.\./([a-z_/]+\.py)\)", section)
    assert len(names) == 10
    assert sum(len((root / name).read_text().splitlines()) for name in names) <= MOST_TO_READ


FOREIGN = {
    "acp",
    "irctokens",
    "mcp",
    "nio",
    "opentelemetry",
    "psycopg",
    "ray",
    "telegram",
    "xllamacpp",
}
"""The packages that extensions are made with."""


def test_nothing_imports_an_extension(modules: list[Any]) -> None:
    """An extension is loaded by name, as an installed package is: nothing else imports one.

    The registries of `workflows/` have the names; what it is made with is imported in it alone.
    """
    for module in modules:
        own = "/".join(module.name.split("/")[:2]) if module.room == "extensions" else ""
        for name in imports(module):
            used = name.removeprefix("./")
            is_own = bool(own) and f"{used}/".startswith((f"{own}/", f"{own}.py"))
            assert not used.startswith("extensions/") or is_own, f"{module.name} imports {used}"
            is_foreign = name.partition(".")[0] in FOREIGN
            assert not is_foreign or own, f"{module.name} imports {name}"
        is_named = "steersman.extensions." in module.text
        assert not is_named or module.room in ("workflows", "extensions"), module.name


def test_an_extension_is_complete(root: Path) -> None:
    """A registry loads it by name; it has tests, a page that the index names, and its extra, if any."""
    declared = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pages = (root / "docs" / "README.md").read_text(encoding="utf-8")
    places = [part.place for part in GATEWAYS.by_name.values()]
    for registry in (EXTENSIONS, HOOK_FORMATS, PROVIDERS):
        places += [registry[name].place for name in registry.built_in]
    for folder in (root / "extensions").glob("*/"):
        if folder.name == "__pycache__":
            continue
        text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text("utf-8"))) or ""
        named = re.search(r"(?:the extra `(\w+)`|needs no extra), docs/([\w-]+\.md)", text)
        assert named is not None, f"extensions/{folder.name} names no extra and no page"
        assert named[1] in {None, *declared["optional-dependencies"]}, named[1]
        assert f"({named[2]})" in pages, f"docs/README.md has no {named[2]}"
        assert list((root / "tests" / "extensions" / folder.name).glob("test_*.py")), folder.name
        place = f"steersman.extensions.{folder.name}"
        assert any(f"{known}.".replace(":", ".").startswith(f"{place}.") for known in places), place


def at_run_time(module: Any) -> Iterator[str]:
    """List the modules that a module imports when it runs, however late, and not for types alone."""
    found: Iterable[str] = imports(module)
    if "if TYPE_CHECKING:" in module.text:
        tree = ast.parse(module.text)
        for node in ast.walk(tree):
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
                node.body = [ast.Pass()]
        found = _imports(SimpleNamespace(name=module.name, tree=tree))
    for name in found:
        yield f"{name.removeprefix('./')}.py"


def test_no_import_circle(modules: list[Any]) -> None:
    """No modules import each other in a circle: what two of them need is in a third."""
    graph = {module.name: set(at_run_time(module)) for module in modules}
    TopologicalSorter(graph).prepare()  # raises with the circle that it found


def test_machines_are_pure_and_actors_only_decide(modules: list[Any]) -> None:
    """No machine touches a clock, a thread, a process or a socket; no actor, no simulator does."""
    for module in modules:
        forbidden: set[str] = set()
        if module.room == "machines":
            forbidden = PURE
        elif module.room == "actors" and module.name not in RUNTIME:
            forbidden = DECIDING
        elif module.room == "simulator":
            forbidden = DECIDING - {"random"}  # made of a seed
        used = {name.partition(".")[0] for name in imports(module)}
        assert not used & forbidden, f"{module.name} imports {sorted(used & forbidden)}"


def test_no_broad_except(modules: list[Any]) -> None:
    """Only the edges catch everything; none of them passes it over."""
    for module in modules:
        for node in ast.walk(module.tree):
            if not isinstance(node, ast.ExceptHandler):
                continue
            caught = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
            names = {name.id if isinstance(name, ast.Name) else name and "" for name in caught}
            is_broad = bool(names & {None, "Exception", "BaseException"})
            place = f"{module.name}:{node.lineno}"
            assert not is_broad or module.name in EDGES, f"{place} catches everything"
            assert not (is_broad and isinstance(node.body[0], ast.Pass)), f"{place} passes it over"


@dataclass(frozen=True)
class Shape:
    """What makes a class large: the names of its methods and attributes, and its chain of bases."""

    methods: frozenset[str]
    attributes: frozenset[str]
    depth: int

    def is_oversized(self, most_methods: int) -> bool:
        """Whether it is two nouns rather than one."""
        return (
            len(self.methods) > most_methods
            or len(self.attributes) > MOST_ATTRIBUTES
            or self.depth > DEEPEST
        )


def flattened(node: ast.ClassDef, known: dict[str, ast.ClassDef]) -> Shape:
    """Measure a class together with those of its bases that are `known`."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    methods = {part.name for part in node.body if isinstance(part, functions)}
    attributes = {
        part.attr
        for part in ast.walk(node)
        if isinstance(part, ast.Attribute)
        and isinstance(part.ctx, ast.Store)
        and ast.unparse(part.value) == "self"
    }
    depth = 0
    for base in node.bases:
        name = ast.unparse(base).rpartition(".")[2]
        if name in known and known[name] is not node:
            shape = flattened(known[name], known)
            methods |= shape.methods
            attributes |= shape.attributes
            depth = max(depth, shape.depth)
    return Shape(frozenset(methods), frozenset(attributes), depth + 1)


LARGE = {
    "a process, a connection or a call, with its pipes, buffers, timers and what was read of it": {
        *("pipe.py:PipeProcess", "supervisor.py:_Supervision", "driven_agent.py:AgentRun"),
        *("client.py:RunningServer", "connection.py:McpConnection"),
        *("pool.py:Pool", "slot.py:Slot", "slot.py:_Command", "presence.py:PostgresPresence"),
    },
    "a model as it is configured: each attribute is a setting of its request": {
        *("anthropic.py:AnthropicModel", "chat.py:ChatModel", "served.py:ServedModel"),
    },
    "what is known of something while it is read or drawn": {
        *("workspace.py:Workspace", "scanner.py:WorkspaceScanner", "turn_view.py:TurnView"),
        *("known_words.py:KnownWords", "spans.py:SessionTrace"),
        *("terminal.py:Canvas", "bindings.py:Bindings", "transcript.py:Transcript"),
    },
    "the tables of a store in memory": {"memory.py:MemoryHome", "memory.py:MemoryStore"},
    "a tool that the program's own function is: what its decorator says": {
        "function.py:FunctionTool"
    },
    "a simulated part with its dice": {
        *("agents.py:AgentPorts", "agents.py:AgentScenario", "workflows.py:WorkflowPorts"),
        *("ports.py:SimulatedPorts", "loops.py:LoopingPorts", "person.py:SimulatedPerson"),
        *("session.py:World", "elsewhere.py:ElsewhereScenario", "player.py:Player"),
    },
    "one person's place at a session, with the threads or tasks that wait for it": {
        *("attached.py:AttachedSession", "attached.py:AttachedRun", "session.py:EditorSession"),
        *("agent.py:AcpAgent", "plain.py:PlainInterface", "home_tools.py:_Run"),
        "input_line.py:InputLine",
    },
    "what is made of a whole configuration": {"library.py:Home"},
}
"""Classes that are larger, by the reason."""


def test_classes_stay_small(modules: list[Any], rooms: tuple[str, ...]) -> None:
    """No class, with its bases, has too many methods or attributes, or is too deep.

    Those that do are listed; one that was divided must leave the list.
    """
    found: set[str] = set()
    for room in rooms:
        classes = {
            f"{module.path.name}:{node.name}": node
            for module in modules
            if module.room == room
            for node in ast.walk(module.tree)
            if isinstance(node, ast.ClassDef)
        }
        known = {node.name: node for node in classes.values()}
        is_interface = room in ("gateway", "extensions", "cli")
        most = MOST_OF_AN_INTERFACE if is_interface else MOST_METHODS
        found |= {
            name for name, node in classes.items() if flattened(node, known).is_oversized(most)
        }
    assert found == set().union(*LARGE.values())


def test_the_underscore_says_what_is_private(modules: list[Any]) -> None:
    """No module says a second time, in `__all__`, what its names say; packages are doors, and may."""
    for module in modules:
        is_said = re.search(r"(?m)^__all__\b", module.text)
        assert module.path.name.startswith("__") or not is_said, module.name


def test_no_sleep_in_tests(root: Path) -> None:
    """Tests wait for an event or a condition, never for time to pass; `sleep(0)` only yields."""
    for path in (root / "tests").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "sleep(" in text else ():
            if isinstance(node, ast.Call):
                is_sleep = ast.unparse(node.func).rpartition(".")[2] == "sleep"
                asked = node.args[0] if is_sleep else None  # what a server asks for may pass
                is_time = isinstance(asked, ast.Constant) and asked.value
                assert not is_time, f"{path.relative_to(root)}:{node.lineno}"


def test_the_project_speaks_of_itself_alone(project_files: list[Path], root: Path) -> None:
    """Nothing here tells of the place where it was made."""
    words = ["/wo" + "rk/", "the C" + "EO", "DEVELOPERS" + ".md", "iss" + "ue #"]
    pattern = re.compile("|".join(words), re.IGNORECASE)
    found: list[str] = []
    for path in project_files:
        text = path.read_bytes().decode(errors="replace")
        found += [f"{path.relative_to(root)}: {match[0]}" for match in pattern.finditer(text)]
    assert found == []


DOORS = ("__init__.py", "__main__.py", "chat.py", "models.py", "testing.py")
"""The Python files at the root: the library, the command, and what gateways and tests are made of."""


@pytest.mark.parametrize("name", DOORS)
def test_the_root_is_small(root: Path, name: str) -> None:
    """At the root there are only doors: they import rooms, relatively, and the first nothing at once."""
    assert sorted(path.name for path in root.glob("*.py")) == sorted(DOORS)
    tree = ast.parse((root / name).read_text(encoding="utf-8"))
    used = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    assert bool(used) == (name != "__init__.py")
    if name in ("chat.py", "models.py", "testing.py"):
        assert all(isinstance(node, ast.ImportFrom) and node.level == 1 for node in used)


INNER = {"environment", "executor", "tool_policy"}
"""What a live session consists of; its record is reached through `sessions`."""


def test_only_actors_touch_a_live_session(modules: list[Any]) -> None:
    """Only actors use a live session's parts: gateway and cli modules ask by message."""
    for module in modules:
        if module.room not in ("gateway", "cli"):
            continue
        for node in ast.walk(module.tree):
            if not isinstance(node, ast.Attribute):
                continue
            owner = ast.unparse(node.value)
            place = f"{module.name}:{node.lineno}"
            is_inside = node.attr in INNER and not owner.endswith("tools")
            assert not is_inside, f"{place} reads `{owner}.{node.attr}`: ask by message"
            holds_runtime = owner.rpartition(".")[2].lstrip("_") == "runtime"
            reaches = holds_runtime and node.attr in ("sessions", "family", "system")
            assert not reaches, f"{place} reads `{owner}.{node.attr}`: ask by message"
