"""Nobody but one module starts a Python: another place would have to think of what a folder may hold."""

import ast
from typing import Any

STARTS = "ports/process/own_python.py"
TABLE = "workflows/environment.py"
"""Says what each variable means, and reads none."""
WORDS = {  # the same words for something that is not started
    "cli/commands/doctor.py": "the name of a finding",
    "cli/screen/markdown_blocks.py": "a language",
    "ports/models/said_files.py": "a language",
    "ports/process/ancestry.py": "what a process is recognized by",
    "ports/tools/survey.py": "what a model is told to run",
}


def test_one_module_knows_the_interpreter(modules: list[Any]) -> None:
    """`sys.executable` and `PYTHONPATH` are in one module; elsewhere, `python` is never a program."""
    places: dict[str, set[str]] = {}
    for module in modules:
        found = places.setdefault(module.name, set())
        for node in ast.walk(module.tree):
            match node:
                case (
                    ast.Attribute(attr="executable" as word) | ast.alias(name="executable" as word)
                ):
                    found.add(word)
                case ast.Constant(value=("PYTHONPATH" | "python" | "python3") as word):
                    found.add(word)
                case _:
                    pass
    assert places.pop(STARTS) == {"executable", "PYTHONPATH"}
    assert places.pop(TABLE) == {"PYTHONPATH"}
    assert {name for name, found in places.items() if found} == set(WORDS)
    for name in WORDS:
        assert places[name] <= {"python", "python3"}, name
