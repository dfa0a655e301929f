"""The command line of `steersman config …`."""

from __future__ import annotations

import os

import typer

from ..options import Json

config = typer.Typer(
    help="Show and check the configuration.\n\nExample: steersman config show",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@config.command("show")
def config_show(as_json: Json = False) -> int:
    """Print the configuration in force, with the source of each key.

    Example: steersman config show
    """
    from ..config import show_config

    return show_config(os.environ, as_json=as_json)


@config.command("path")
def config_path(as_json: Json = False) -> int:
    """Print the folders and files in use.

    Example: steersman config path
    """
    from ..config import show_paths

    return show_paths(os.environ, as_json=as_json)


@config.command("check")
def config_check(as_json: Json = False) -> int:
    """Check every configuration file that applies here.

    Example: steersman config check
    """
    from ..config import check_config

    return check_config(os.environ, as_json=as_json)


@config.command("schema")
def config_schema() -> int:
    """Print the JSON Schema of the configuration, for editors.

    Example: steersman config schema > steersman.schema.json
    """
    from ..config import show_schema

    return show_schema()
