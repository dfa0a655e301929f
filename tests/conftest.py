"""Let the tests run from a bare checkout, under whatever name its folder has."""

import importlib.util
import sys
from pathlib import Path

if importlib.util.find_spec("steersman") is None:
    root = Path(__file__).resolve().parent.parent
    spec = importlib.util.spec_from_file_location(
        "steersman", root / "__init__.py", submodule_search_locations=[str(root)]
    )
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules["steersman"] = package
    spec.loader.exec_module(package)
