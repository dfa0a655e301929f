"""The weights of embedded models for tests with a real model."""

import importlib.util
import os
from pathlib import Path

import pytest

from steersman.extensions.embedded.download import fetch
from steersman.machines.errors import ModelError
from steersman.ports.models.weights import entry_named, fetched
from steersman.workflows.paths import Paths


def weights_of(name: str) -> Path:
    """Return a model's weights from the cache folder of whoever runs the tests; skips without them.

    `STEERSMAN_TEST_CACHE` names another folder, into which they are also fetched.
    """
    entry = entry_named(name)
    assert entry is not None
    if importlib.util.find_spec("xllamacpp") is None:
        pytest.skip("the package xllamacpp is not installed: pip install '.[local]'")
    kept = os.environ.get("STEERSMAN_TEST_CACHE")
    if not kept:
        if found := fetched(entry, Paths.of(os.environ).cache):
            return found
        pytest.skip(f"the weights are not here: `steersman models fetch {entry.name}`")
    try:
        return fetch(entry, Path(kept), lambda done, total: None)
    except ModelError as error:
        pytest.skip(f"the weights cannot be had: {error.message}")
