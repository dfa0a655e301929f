"""The library's pages have everything that a program may use of the package, and the package no more.

docs/library.md is for programs; the pages that it names say the rest: plugins, simulation, gateways.
"""

import inspect
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import steersman
import steersman.chat
import steersman.models
import steersman.testing

MODULES = {
    "steersman": steersman,
    "steersman.chat": steersman.chat,
    "steersman.models": steersman.models,
    "steersman.testing": steersman.testing,
}
"""The public modules; what each exports is in its `__all__`."""
FOR_THE_RUNTIME = {"FunctionTool": {"begin", "called_apart", "fault", "look_up", "on", "start"}}
"""Methods of public classes that the runtime calls, and no program."""


@pytest.fixture
def page(root: Path) -> str:
    """What stands in backticks or in a block of the pages."""
    names = ("library", "plugins", "simulation", "gateways")
    text = "\n".join((root / "docs" / f"{name}.md").read_text("utf-8") for name in names)
    blocks = re.findall(r"^```\w*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    quoted = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S))
    return "\n".join((*blocks, *quoted))


def exported(module: ModuleType) -> dict[str, Any]:
    """Return what a module exports, by name."""
    return {name: getattr(module, name) for name in module.__all__}


def members(kind: type) -> set[str]:
    """Return the public methods, properties and fields of a class, with those of our own bases."""
    ours = [base for base in kind.__mro__ if base.__module__.startswith("steersman.")]
    found = {
        name for base in ours for name, value in vars(base).items() if not isinstance(value, type)
    }
    fields = getattr(kind, "__struct_fields__", ())
    return {name for name in (*found, *fields) if not name.startswith("_")}


def is_named(name: str, page: str) -> bool:
    """Whether a page has a name as a word of its own."""
    return re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", page) is not None


@pytest.mark.parametrize("name", MODULES)
def test_everything_that_is_exported_is_on_the_page(name: str, page: str) -> None:
    """Each name, and each public method, property and field of each class."""
    missing: list[str] = []
    for export, value in exported(MODULES[name]).items():
        missing += [export] * (not is_named(export, page))
        if inspect.isclass(value) and not issubclass(value, BaseException):
            wanted = members(value) - FOR_THE_RUNTIME.get(export, set())
            missing += [f"{export}.{one}" for one in wanted if not is_named(one, page)]
    assert sorted(missing) == []


@pytest.mark.parametrize("name", MODULES)
def test_exports_are_sorted_and_there(name: str) -> None:
    """Each name is found, once, and one that is not exported is not."""
    module = MODULES[name]
    assert list(module.__all__) == sorted(set(module.__all__))
    assert all(value is not None for value in exported(module).values())
    assert not hasattr(module, "nothing")
