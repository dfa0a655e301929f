"""A home, a project, a model server, and commands that are echoes, as the black-box tests have them."""

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
from support.changes import is_left_out

__all__ = ["echoed", "gate", "place", "pytest_generate_tests", "pytest_pyfunc_call", "serve"]

HERE = Path(__file__).parent


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave an extension out of `make test` if nothing of it or of what it uses changed."""
    is_extension = collection_path.parent == HERE and collection_path.is_dir()
    return (is_extension and is_left_out(collection_path.name, config)) or None
