"""`steersman serve`."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from ..options import Json

serve = typer.Typer(
    help="Run the home's sessions in a program that outlives terminals, with a page and HTTP.\n\n"
    "Example: steersman serve --port 8200",
    rich_markup_mode=None,
)


@serve.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Other than loopback only with TLS.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(metavar="N", min=0, max=65535, help="The port; 0: as configured.")
    ] = 0,
    is_foreground: Annotated[
        bool, typer.Option("--foreground", help="Stay in this terminal until Ctrl-C.")
    ] = False,
    log_format: Annotated[
        Literal["text", "json"],
        typer.Option(metavar="text|json", help="JSON: one object a line, also of sessions."),
    ] = "text",
) -> int:
    """Start to serve, and print the address."""
    if context.invoked_subcommand is not None:
        return 0
    from ..serve import serve_here, serve_in_background

    begin = serve_here if is_foreground else serve_in_background
    return begin(host, port, is_json=log_format == "json")


@serve.command()
def status(as_json: Json = False) -> int:
    """Show where the home is served; exit code 1 if it is not.

    Example: steersman serve status
    """
    from ..serve import status as show_status

    return show_status(as_json=as_json)


@serve.command()
def stop() -> int:
    """End the program that serves the home; its sessions are suspended.

    Example: steersman serve stop
    """
    from ..serve import stop as end

    return end()


@serve.command()
def install() -> int:
    """Have systemd, or launchd on macOS, start the server at login, and now.

    Example: steersman serve install
    """
    from ..serve import install as write_unit

    return write_unit()


@serve.command()
def uninstall() -> int:
    """Start the server at login no longer, and end it.

    Example: steersman serve uninstall
    """
    from ..serve import uninstall as remove_unit

    return remove_unit()
