"""A home, a project folder, and a way to load with what a test puts into them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steersman.machines.errors import ConfigError
from steersman.workflows.config import Config, load
from steersman.workflows.paths import Paths

Load = Callable[..., Config]


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    """An empty home."""
    return Paths.of({"STEERSMAN_HOME": str(tmp_path / "home")})


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """An empty project folder."""
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def load_with(paths: Paths, project: Path, tmp_path: Path) -> Load:
    """Write the given texts where each layer belongs, and load."""

    def load_them(
        user: str = "", project_file: str = "", named: str = "", flags: dict[str, Any] | None = None
    ) -> Config:
        environ: dict[str, str] = {}
        if user:
            paths.config.mkdir(parents=True, exist_ok=True)
            paths.config_file.write_text(user)
        if project_file:
            (project / "steersman.toml").write_text(project_file)
        if named:
            (tmp_path / "named.toml").write_text(named)
            environ["STEERSMAN_CONFIG"] = str(tmp_path / "named.toml")
        return load(paths, project, environ, flags)

    return load_them


@pytest.fixture
def error_of(load_with: Load, tmp_path: Path) -> Callable[..., str]:
    """Load and return the text of the error, with the test's folder left out."""

    def text_of(**layers: Any) -> str:
        with pytest.raises(ConfigError) as caught:
            load_with(**layers)
        return str(caught.value).replace(f"{tmp_path}/", "")

    return text_of
