"""Let the tests run from a bare checkout, under whatever name its folder has."""

import importlib.util
import sys
from pathlib import Path

import pytest

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


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name the seeds that were drawn for the simulator, and what their runs came upon."""
    noted = [
        value
        for outcome in ("passed", "failed")
        for report in terminalreporter.getreports(outcome)
        for name, value in report.user_properties
        if name == "simulation"
    ]
    if noted:
        from simulation.coverage import summary

        terminalreporter.section("simulation")
        for line in summary(noted):
            terminalreporter.write_line(line)
