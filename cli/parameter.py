"""Options and arguments that several commands have."""

from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Session = Annotated[
    str, typer.Argument(metavar="ID", help="A session's id, a unique begin of one, or `last`.")
]
Of = Annotated[
    str,
    typer.Option(
        "--session", metavar="ID", help="A session; without it the newest one of this folder."
    ),
]
Number = Annotated[int, typer.Argument(metavar="N", help="The number that the list shows.")]
NumberOrLast = Annotated[int, typer.Argument(metavar="N", help="Its number; the last if left out.")]
