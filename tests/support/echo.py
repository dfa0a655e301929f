"""The program with one command that does nothing but repeat what was typed, and its own help.

    python echo.py COMMAND NOTE [ARGUMENT ...]

`COMMAND` is a slash command (`/queue add`) or one of the command line (`queue add`); each time it runs, a
line is added to the file `NOTE`. A test of a command's data has to fail with it: `blackbox/conftest.py`.
"""

import functools
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

__all__ = ["ECHO", "walk"]

ECHO = Path(__file__).resolve()


def walk() -> Iterator[tuple[str, Any]]:
    """Give the commands of the command line by their whole names."""
    from steersman.cli.app import whole_program

    for name, found in whole_program().commands.items():
        verbs = getattr(found, "commands", None)
        if verbs is None:
            yield name, found
        else:
            yield from ((f"{name} {verb}", command) for verb, command in verbs.items())


def echo_of_slash(name: str, note: Callable[[], None]) -> None:
    """Replace a slash command by its echo."""
    from steersman.gateway.commands.command import Reply
    from steersman.gateway.commands.registry import DECLARED

    command = DECLARED[name]

    @functools.wraps(command.function)
    def echo(client: Any, *given: Any, **named: Any) -> Reply:
        note()
        text = f"/{name} {command.usage} {given} {named} {command.doc}"
        return Reply(ok=True, data={"ok": True, "given": [*given], **named}, text=text)

    command.function, command.says = echo, ""


def echo_of_program(name: str, note: Callable[[], None]) -> None:
    """Replace a command of the command line by its echo."""
    from steersman.cli import chat_options, emit

    command = dict(walk())[name]
    real: Any = command.callback

    @functools.wraps(real)
    def echo(**given: Any) -> int:
        note()
        shown = {
            key: value if isinstance(value, bool) else str(value) for key, value in given.items()
        }
        is_json = given.get("as_json") or given.get("form") == "json"
        print(json.dumps({"ok": True, **shown}) if is_json else f"{name} {shown} {real.__doc__}")
        return 0

    command.callback = echo
    chat_options.usual_options = lambda arguments: None  # `chat` is read from its declaration, too
    if name == "hooks emit":
        emit.emit = lambda arguments: sys.exit(echo(arguments=arguments))


def main() -> None:
    """Run the program with the echo."""
    name, file, *arguments = sys.argv[1:]

    def note() -> None:
        with open(file, "a") as notes:
            notes.write(f"{name}\n")

    sys.argv = ["steersman", *arguments]
    (echo_of_slash if name.startswith("/") else echo_of_program)(name.removeprefix("/"), note)
    from steersman.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
