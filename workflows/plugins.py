"""Plug-ins: what installed distributions add to the program by entry points, and how it is loaded.

An `EntryPoints` is one group, such as `steersman.tools`. The names in it come from the metadata of the
distributions and cost no import; an object is imported when it is first used. Whatever is wrong with a
plug-in is a `PlugInError`, which names the distribution and the entry point, and nothing else fails.

Only what is installed counts: a distribution in the current folder is none, so that a project that was
downloaded from somewhere adds nothing. Source of the format:
https://packaging.python.org/specifications/entry-points/.
"""

from __future__ import annotations

import inspect
import os
import sys
import traceback
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from .. import __version__
from ..machines.errors import PlugInError
from ..machines.value import Value

if TYPE_CHECKING:
    from importlib.metadata import Distribution

PREFIX = "steersman."
"""Begins the name of every group."""
_LONGEST = 300
"""Characters of an error that are shown."""


class PlugIn(Value):
    """One entry point: `place` is where its object is, `noun` what its group gives, in a sentence.

    `fault` is what can be said against it without an import, with the next step in `hint`.
    """

    name: str
    place: str
    distribution: str
    version: str
    group: str = ""
    noun: str = ""
    fault: str = ""
    hint: str = ""

    @property
    def origin(self) -> str:
        """The distribution with its version."""
        return f"{self.distribution} {self.version}".rstrip()

    def error(self, fault: str, hint: str = "", what: str = "cannot be used") -> PlugInError:
        """Return the error for a fault of this plug-in; `what` is what came of it."""
        usual = f"update or uninstall `{self.distribution}`; `steersman plugins list` shows all"
        message = f"{self.noun} `{self.name}` of {self.origin} (`{self.name} = {self.place}`)"
        return PlugInError(f"{message} {what}: {fault}", hint or usual, fault=fault)

    @contextmanager
    def guarded(
        self, passes: type[Exception] = PlugInError, what: str = "cannot be used"
    ) -> Generator[None]:
        """Turn any error of the plug-in's own code into a `PlugInError`, but for those of `passes`."""
        try:
            yield
        except passes:
            raise
        except (Exception, SystemExit) as error:
            if isinstance(error, SystemExit) and type(error) is not SystemExit:
                raise  # a signal asks the program to leave
            raise self.error(_told(error), what=what) from error


def _told(error: BaseException) -> str:
    """Say what an error is in one line, with the line of code that raised it."""
    text = " ".join(str(error).split())
    text = f"{text[:_LONGEST]}…" if len(text) > _LONGEST else text
    said = f"{type(error).__name__}: {text}" if text else type(error).__name__
    ours = ("<", os.path.dirname(os.__file__), str(Path(__file__).parents[1]))
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(ours) or "-packages" in frame.filename
    ]
    return f"{said} ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else said


class EntryPoints:
    """The entry points of one group, which `noun` names in a sentence.

    Their objects are of the class `gives` of the package `steersman`, or else functions that can be
    called with the arguments `called_with`. `check_name` returns the fault of a name, such as that it is
    taken, and `check` that of an object; empty if there is none. `is_many`: plug-ins may share a name.
    """

    def __init__(
        self,
        group: str,
        noun: str,
        *,
        gives: str = "",
        called_with: tuple[str, ...] = (),
        check_name: Callable[[str], str] = lambda name: "",
        check: Callable[[Any], str] = lambda found: "",
        is_many: bool = False,
    ) -> None:
        self.group = group
        self.noun = noun
        self.gives = gives
        self.called_with = called_with
        self._check_name = check_name
        self._check = check
        self._is_many = is_many

    @cached_property
    def plug_ins(self) -> tuple[PlugIn, ...]:
        """All entry points of the group, by name; with faults that need no import to be seen."""
        found = [
            replace(row, noun=self.noun, fault=row.fault or self._check_name(row.name))
            for row in _rows()
            if row.group == self.group
        ]
        found.sort(key=lambda plug_in: (plug_in.name, plug_in.distribution, plug_in.place))
        return tuple(found if self._is_many else (_unique(plug_in, found) for plug_in in found))

    @cached_property
    def by_name(self) -> Mapping[str, PlugIn]:
        """The plug-ins that can be looked up; one that shares its name with another has a fault."""
        return {
            plug_in.name: plug_in
            for plug_in in reversed(self.plug_ins)
            if not self._check_name(plug_in.name)
        }

    def load(self, name: str) -> Any:
        """Import a plug-in and return its object, checked. Raises `KeyError`, `PlugInError`."""
        return self.checked(self.by_name[name])

    def checked(self, plug_in: PlugIn) -> Any:
        """Import a plug-in of this group and return its object, checked. Raises `PlugInError`."""
        if plug_in.fault:
            raise plug_in.error(plug_in.fault, plug_in.hint)
        with plug_in.guarded():
            module, _, attribute = plug_in.place.partition(":")
            found: Any = import_module(module)
            for part in attribute.split("."):
                found = getattr(found, part)
            fault, hint = self._fault(found, plug_in.name)
            if fault:
                raise plug_in.error(fault, hint)
        return found

    def _fault(self, found: Any, name: str) -> tuple[str, str]:
        """Return what is wrong with an object, and the next step; empty if it can be used."""
        kind = type(found).__name__
        if self.gives:
            wanted = getattr(import_module(__name__.partition(".")[0]), self.gives)
            if not isinstance(found, wanted):
                return f"it is a `{kind}`, and no `steersman.{self.gives}`", ""
            if found.name != name:
                hint = f"name its entry point `{found.name}`, too"
                return f"its own name is `{found.name}`, which is another one", hint
            return self._check(found), ""
        if not callable(found):
            return f"it is a `{kind}`, and no function", ""
        with suppress(ValueError):  # what is written in C may have no signature
            try:
                inspect.signature(found).bind(*self.called_with)
            except TypeError as error:
                return f"it cannot be called with ({', '.join(self.called_with)}): {error}", ""
        return self._check(found), ""


def _unique(plug_in: PlugIn, found: list[PlugIn]) -> PlugIn:
    """Give a plug-in a fault if another one has its name."""
    same = [other for other in found if other.name == plug_in.name]
    if len(same) < 2 or plug_in.fault:
        return plug_in
    others = sorted({other.origin for other in same} - {plug_in.origin}) or [plug_in.origin]
    fault = f"{' and '.join(others)} has a {plug_in.noun} of this name, too"
    return replace(
        plug_in, fault=fault, hint=f"uninstall `{plug_in.distribution}` or the other one"
    )


# Reading the metadata of distributions ------------------------------------------------------------


def installed_path() -> list[str]:
    """Return the folders in which distributions count as installed: not the current one."""
    here = ""
    with suppress(OSError):  # the current folder was removed
        here = os.path.realpath(os.getcwd())
    return [path for path in sys.path if os.path.isabs(path) and os.path.realpath(path) != here]


_OWN = {name: f"steersman.extensions.{name}:{name}" for name in ("irc", "matrix", "telegram")}
"""The gateways of this package; its own metadata is not read for them, as that would slow every start."""


@cache
def _rows() -> tuple[PlugIn, ...]:
    """Read the entry points of all installed distributions that are ours."""
    own = tuple(
        PlugIn(
            group=f"{PREFIX}gateways",
            name=name,
            place=place,
            distribution="steersman",
            version=__version__,
        )
        for name, place in _OWN.items()
    )
    path = installed_path()
    if not any(map(_may_have_ours, path)):
        return own
    from importlib.metadata import distributions

    rows = [*own]
    seen: set[str] = set()
    for found in distributions(path=path):
        if PREFIX not in _text(found):
            continue
        name = found.metadata["Name"] or "unknown"
        if (key := name.lower().replace("_", "-").replace(".", "-")) in seen:
            continue
        seen.add(key)
        first = next(iter(distributions(name=name, path=path)), found)  # which Python imports
        rows += _parsed(_text(first), name, first.metadata["Version"] or "")
    return tuple(rows)


def _may_have_ours(folder: str) -> bool:
    """Whether a folder of `sys.path` may have distributions with entry points of ours.

    Mostly there are none. To find that out with `importlib.metadata` takes longer, and imports much.
    """
    if not os.path.isdir(folder) or folder.endswith(".egg"):
        return os.path.exists(folder)  # an archive
    try:
        infos = [name for name in os.listdir(folder) if name.endswith((".dist-info", ".egg-info"))]
    except OSError:
        return False
    for name in infos:
        with suppress(OSError), open(f"{folder}/{name}/entry_points.txt", "rb") as file:
            if b"[" + PREFIX.encode() in file.read().replace(b" ", b""):
                return True
    return False


def _text(distribution: Distribution) -> str:
    try:
        return distribution.read_text("entry_points.txt") or ""
    except ValueError:  # no UTF-8
        return ""


def _parsed(text: str, distribution: str, version: str) -> Iterator[PlugIn]:
    """Read `[group]` and `name = package.module:object` lines; one that is neither has a fault."""
    group = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            group = line[1:-1].strip()
            continue
        if not line or line[0] in "#;" or not group.startswith(PREFIX):
            continue
        name, _, value = line.partition("=")
        module, _, attribute = map(str.strip, value.partition("[")[0].partition(":"))
        parts = [*module.split("."), *attribute.split(".")]
        is_place = all(part.isidentifier() for part in parts)
        yield PlugIn(
            group=group,
            name=name.strip(),
            place=f"{module}:{attribute}".rstrip(":"),
            distribution=distribution,
            version=version,
            fault="" if is_place else "it is not of the form `name = package.module:object`",
        )


# Groups of which nothing is built in --------------------------------------------------------------


def _agent_fault(agent: Any) -> str:
    """Find what an agent grants itself; only a person may."""
    granted = [pattern for pattern, verb in agent.permissions.items() if verb != "deny"]
    if granted:
        verb = agent.permissions[granted[0]]
        return f"its permissions say `{verb}` of `{granted[0]}`: an installed agent may only deny"
    return ""


def _gateway_fault(gateway: Any) -> str:
    run: Any = gateway if inspect.isroutine(gateway) else type(gateway).__call__
    return "" if inspect.iscoroutinefunction(run) else "it is no coroutine function (`async def`)"


def _scheme_fault(name: str) -> str:
    is_scheme = name[:1].isalpha() and name.replace("+", "a").replace("-", "a").isalnum()
    return "" if is_scheme and name == name.lower() else "this is no scheme of a URL"


AGENTS = EntryPoints(f"{PREFIX}agents", "agent", gives="Agent", check=_agent_fault)
"""Agents: what is configured under the name of one goes first."""
GATEWAYS = EntryPoints(
    f"{PREFIX}gateways", "gateway", called_with=("home", "settings"), check=_gateway_fault
)
"""Interfaces that `steersman gateway run NAME` runs with a home and the table `[gateways.NAME]`."""
STORES = EntryPoints(f"{PREFIX}stores", "store", called_with=("url",), check_name=_scheme_fault)
"""Homes elsewhere, by the scheme of their URL."""
