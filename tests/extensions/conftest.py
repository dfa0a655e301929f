"""A home, a project, a model server, and commands that are echoes, as the black-box tests have them."""

import os
from pathlib import Path

import pytest
from blackbox.conftest import (
    echoed,
    gate,
    place,
    pytest_generate_tests,
    pytest_pyfunc_call,
    serve,
)
from support.changes import changed_files, is_extension_touched

__all__ = ["echoed", "gate", "place", "pytest_generate_tests", "pytest_pyfunc_call", "serve"]

HERE = Path(__file__).parent


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave an extension out of `make test` if nothing of it, of its tests or of what they use changed.

    `make test-all` and continuous integration run all, as does whoever names a folder of them.
    """
    is_named = any("extensions" in argument for argument in config.args)
    if config.option.markexpr != "not nightly" or is_named or os.environ.get("CI"):
        return None
    if collection_path.parent != HERE or not collection_path.is_dir():
        return None
    return not is_extension_touched(collection_path.name, changed_files()) or None
