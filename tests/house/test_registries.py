"""Each part that a registry lists can be loaded, is documented, and is tested."""

import inspect
from pathlib import Path
from typing import Any

import pytest

from steersman.ports.models.provider import Provider
from steersman.ports.process.host import ProcessHost
from steersman.ports.tools.tool import Tool
from steersman.ports.tools.toolbox import Toolbox
from steersman.workflows.providers import EMBEDDED, PROVIDERS, SERVICES
from steersman.workflows.registry import Part, Registry
from steersman.workflows.tools import TOOLS


def methods_of(protocol: type) -> set[str]:
    """Name the public methods of a protocol."""
    found = inspect.getmembers(protocol, inspect.isfunction)
    return {name for name, _ in found if not name.startswith("_")}


def is_tested(root: Path, suite: str, module: str) -> bool:
    """Whether a test of a suite imports a module."""
    texts = [path.read_text(encoding="utf-8") for path in (root / "tests" / suite).glob("*.py")]
    return any(f"from {module} import" in text for text in texts)


@pytest.mark.parametrize("name", PROVIDERS.built_in)
def test_a_provider_is_complete(root: Path, name: str) -> None:
    """A provider has every method, an example in the docs, and tests that import its module."""
    assert not methods_of(Provider) - set(dir(PROVIDERS.load(name)))
    docs = (root / "docs" / "models.md").read_text(encoding="utf-8")
    assert f'provider = "{name}"' in docs, f"docs/models.md has no example of `{name}`"
    module = PROVIDERS[name].place.partition(":")[0]
    _, room, folder, *_ = module.split(".")
    suite = f"extensions/{folder}" if room == "extensions" else "models"
    assert is_tested(root, suite, module), f"no test in tests/{suite} imports {module}"


@pytest.mark.parametrize("name", TOOLS.built_in)
def test_a_tool_is_complete(root: Path, name: str) -> None:
    """A tool has every method and its own name, a section in the docs, and tests that call it."""
    tool = Toolbox(ProcessHost(), grace=0.0, output_limit=0).get(name)
    assert tool is not None
    assert not methods_of(Tool) - set(dir(tool))
    assert tool.schema.name == name
    assert f"\n## {name}\n" in (root / "docs" / "tools.md").read_text(encoding="utf-8")
    texts = [path.read_text(encoding="utf-8") for path in (root / "tests" / "tools").glob("*.py")]
    assert any(f'"{name}"' in text for text in texts), f"no test in tests/tools calls `{name}`"


def test_services_use_known_providers() -> None:
    """Each hosted service, and the fallback, names a provider that is listed."""
    assert {service.provider for service in SERVICES} | {EMBEDDED} <= set(PROVIDERS)


def test_a_part_is_found_by_its_name() -> None:
    """A built-in part is loaded from its place; a name that is not there is no part."""
    registry: Registry[Any] = Registry("joiner", {"join": Part(place="posixpath:join")})
    assert list(registry) == ["join"]
    assert registry.load("join")("a", "b") == "a/b"
    assert "read" not in registry
