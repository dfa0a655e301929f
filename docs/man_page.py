"""The manual pages and the completions of shells: written from the commands, put into the wheel."""

import re
from importlib import import_module
from typing import Any

from steersman.cli.app import command_named, whole_program
from steersman.cli.exit_codes import EXIT_CODES
from steersman.cli.options import ABOUT

__all__ = ["completion", "man_page", "man_pages"]


def man_pages() -> list[str]:
    """List the names of the pages: the program, and each of its commands."""
    return ["steersman", *(f"steersman-{name}" for name in ABOUT)]


def man_page(name: str) -> str:
    """Write a page, as groff's man(7) has it: https://man7.org/linux/man-pages/man7/man.7.html."""
    first = name.partition("-")[2]
    command: Any = command_named(first) if first else whole_program()
    about = ABOUT[first] if first else str(command.help).partition("\n")[0]
    usage, paragraphs, example, options = _parts(command, *name.split("-", 1))
    lines = [
        '.\\" Written by docs/generate.py from the help of the commands: run `make docs`.',
        f'.TH {name.upper()} 1 "" steersman "steersman manual"',
        f".SH NAME\n{name} \\- {_roff(about)}",
        f".SH SYNOPSIS\n{usage}\n.SH DESCRIPTION",
        *paragraphs,
        *([".SH OPTIONS", *options] if options else []),
    ]
    if first and hasattr(command, "commands"):
        lines.append(".SH COMMANDS")
    for verb, each in getattr(command, "commands", {}).items() if first else ():
        its_usage, its_paragraphs, its_example, its_options = _parts(each, name, verb)
        lines += [f".SS {its_usage}", *its_paragraphs, *its_options, f".PP\nExample: {its_example}"]
    if not first:
        lines += [".SH COMMANDS", *(line for row in ABOUT.items() for line in _row(*row))]
        codes = ((str(code), text) for code, text in EXIT_CODES.items())
        lines += [".SH EXIT STATUS", *(line for row in codes for line in _row(*row))]
    lines += [f".SH EXAMPLES\n{example}", ".SH SEE ALSO"]
    lines += [".BR steersman (1);", "`steersman docs` has all pages."]
    return "\n".join(lines) + "\n"


def _parts(command: Any, *names: str) -> tuple[str, list[str], str, list[str]]:
    """Return how a command is typed, the paragraphs of its help, its example, and its options."""
    called = " ".join(names).replace("-", " ", 1)
    context = command.context_class(command, info_name=called)
    texts = [" ".join(part.split()) for part in str(command.help).split("\n\n")]
    paragraphs = [_roff(text) for text in texts if not text.startswith("Example: ")]
    paragraphs[1:] = [f".PP\n{text}" for text in paragraphs[1:]]
    example = next(text for text in texts if text.startswith("Example: ")).removeprefix("Example: ")
    records = (param.get_help_record(context) for param in command.get_params(context))
    rows = [line for record in records if record for line in _row(*record)]
    usage = " ".join((called, *command.collect_usage_pieces(context)))
    return _roff(usage), paragraphs, _roff(example), rows


def _row(name: str, text: str) -> list[str]:
    return [".TP", f".B {_roff(name)}", _roff(" ".join(text.split()))]


def _roff(text: str) -> str:
    """Escape what would be a request, or drawn as another sign."""
    text = re.sub(r"[-`'^~]", lambda sign: _SIGNS[sign[0]], text.replace("\\", "\\e"))
    return f"\\&{text}" if text.startswith(".") else text


_SIGNS = {"-": "\\-", "`": "\\(ga", "'": "\\(aq", "^": "\\(ha", "~": "\\(ti"}


def completion(shell: str) -> str:
    """Write what a shell loads when `steersman` is completed for the first time."""
    typer: Any = import_module("typer.completion")  # the function is not declared public
    script = typer.get_completion_script(
        prog_name="steersman", complete_var="_STEERSMAN_COMPLETE", shell=shell
    )
    if shell == "zsh":  # the file is the function itself
        script = f"#compdef steersman\n{re.findall(r'^ *(eval .*)$', script, re.M)[0]}"
    return f"{script}\n"
