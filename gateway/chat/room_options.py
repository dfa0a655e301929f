"""What a gateway's table says of its rooms."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ...machines.errors import ConfigError
from ...workflows.document import is_table


class RoomOptions(BaseModel):
    """What a gateway's table says of one room.

    `on_restart` says what happens to what waited when the gateway ended: it waits, or is resumed. `parts`
    is in how many messages a text is said at most, until a person asks for the rest.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    agent: str = ""
    folder: str = "."
    busy: Literal["queue", "steer", "interrupt"] = "queue"
    on_restart: Literal["wait", "resume"] = "wait"
    only_addressed: bool = False
    parts: int = Field(default=20, ge=1)


def room_options(gateway: str, settings: dict[str, Any]) -> dict[str, RoomOptions]:
    """Take the rooms out of a gateway's table. Raises `ConfigError`."""
    rooms: Any = settings.pop("rooms", {})
    if not is_table(rooms) or not rooms:
        raise ConfigError(
            f"gateway `{gateway}`: it has no rooms",
            f'add them: rooms = {{ "NAME" = {{ folder = "." }} }} in [gateways.{gateway}]',
        )
    found: dict[str, RoomOptions] = {}
    for name, options in rooms.items():
        try:
            found[str(name)] = RoomOptions.model_validate(options)
        except ValidationError as error:
            raise mistake(f"gateway `{gateway}`: room `{name}`", error) from error
    return found


def mistake(where: str, error: ValidationError) -> ConfigError:
    """Return the first mistake of a table in words."""
    first = error.errors(include_url=False)[0]
    key = ".".join(map(str, first["loc"]))
    said = {"extra_forbidden": "there is no such key", "missing": "it is missing"}
    what = said.get(first["type"], str(first["msg"]).removeprefix("Value error, "))
    hint = "docs/gateways.md has the keys"
    return ConfigError(f"{where}: {f'`{key}`: ' if key else ''}{what}", hint)
