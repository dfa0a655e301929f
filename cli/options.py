"""Options and arguments that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Session = Annotated[
    str, typer.Argument(metavar="ID", help="A session's id, a unique prefix of one, or `last`.")
]
Of = Annotated[
    str,
    typer.Option(
        "--session", metavar="ID", help="A session; if left out, the newest of this folder."
    ),
]


def group(about: str, example: str, *, is_command: bool = False) -> typer.Typer:
    """Return a group of commands with its help; `is_command`: without one of them it acts itself."""
    return typer.Typer(
        help=f"{about}\n\nExample: {example}",
        no_args_is_help=not is_command,
        rich_markup_mode=None,
        add_completion=False,
    )
