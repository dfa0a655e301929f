"""Joins the rooms of a chat platform to sessions.

Each room has three tasks: one deals with what people do, in the order in which it came
(`room_inbox.py`); one follows the session and writes down what the room gets
(`room_session.py`); one sends that (`room_outbox.py`). What is between them is on disk (`store.py`), so
each may be cut off anywhere.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any, Never, cast

from pydantic import ValidationError

from ...journal.lock import this_process
from ...machines.errors import ConfigError, SteersmanError, UsageError
from ...machines.people import Person
from ...workflows.document import is_table
from ...workflows.extras import how_to_install
from ...workflows.home_folder import expanded
from ..library import Home
from ..reach import alone
from .gateway_store import FIRST_PAUSE, LONGEST_PAUSE, GatewayStore, Unwritten
from .platform import Chosen, Gap, Inbound, Platform, Removed, Said
from .platform_parts import pauses
from .room import Room, RoomOptions
from .room_inbox import RoomInbox
from .room_outbox import send_all, warn
from .room_session import RoomSession

log = logging.getLogger("steersman.chat")


class ChatGateway:
    """A gateway to a chat platform, as an entry point of the group `steersman.gateways` gives it.

    `make` makes the platform of the table `[gateways.NAME]`, without `rooms`, and of the names of the
    rooms. It raises `ConfigError` for a wrong key or a missing secret.
    """

    def __init__(
        self, name: str, make: Callable[[dict[str, Any], tuple[str, ...]], Platform]
    ) -> None:
        self.name = name
        self._make = make

    async def __call__(self, home: Home, settings: dict[str, Any]) -> None:
        """Join rooms to sessions until this is cancelled.

        Raises `SteersmanError` for what waiting does not repair.
        """
        options, platform = self._read(settings)
        try:
            await _join(home, self.name, options, platform)
        finally:
            await platform.aclose()

    async def check(self, settings: dict[str, Any]) -> list[str]:
        """Connect once, and return what was found, in lines. Raises `SteersmanError`."""
        options, platform = self._read(settings)
        try:
            for room, chosen in options.items():
                _check_folder(self.name, room, chosen)
            return await platform.check()
        finally:
            await platform.aclose()

    async def validate(self, settings: dict[str, Any]) -> None:
        """Look at the table, and connect to nothing. Raises `SteersmanError` for what is wrong in it."""
        _, platform = self._read(settings)
        await platform.aclose()

    def _read(self, settings: dict[str, Any]) -> tuple[dict[str, RoomOptions], Platform]:
        own = dict(settings)
        options = _room_options(self.name, own)
        try:
            return options, self._make(own, tuple(options))
        except ValidationError as error:
            raise _mistake(f"gateway `{self.name}`", error) from error
        except ModuleNotFoundError as error:
            raise UsageError(
                f"gateway `{self.name}` needs the package `{error.name}`", how_to_install(self.name)
            ) from error


def _room_options(gateway: str, settings: dict[str, Any]) -> dict[str, RoomOptions]:
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
            raise _mistake(f"gateway `{gateway}`: room `{name}`", error) from error
    return found


def _mistake(where: str, error: ValidationError) -> ConfigError:
    """Return the first mistake of a table in words."""
    first = error.errors(include_url=False)[0]
    key = ".".join(map(str, first["loc"]))
    said = {"extra_forbidden": "there is no such key", "missing": "it is missing"}
    what = said.get(first["type"], str(first["msg"]).removeprefix("Value error, "))
    hint = "docs/gateways.md has the keys"
    return ConfigError(f"{where}: {f'`{key}`: ' if key else ''}{what}", hint)


async def _join(
    home: Home, gateway: str, options: dict[str, RoomOptions], platform: Platform
) -> None:
    people = home.people(gateway)
    if not people:
        raise ConfigError(
            f"gateway `{gateway}`: no person may talk here",
            f'add who may: [people] ann = {{ {gateway} = "NAME" }}',
        )
    _check_names(gateway, people, platform)
    store = GatewayStore(home.state / "gateways" / f"{gateway}.sqlite")
    owner, does = this_process("", time.time()), f"runs the gateway `{gateway}`"
    with alone(home.state / "gateways", gateway, owner, does, "end it first"):
        await store.open()
        try:
            for name, chosen in options.items():
                session, _ = await store.room(name)
                if not session:  # else it was lost: people learn that when they say something
                    _check_folder(gateway, name, chosen)
            shared = (gateway, home, platform, store, people)
            rooms = {name: Room(*shared, name, chosen) for name, chosen in options.items()}
            async with asyncio.TaskGroup() as tasks:
                for room in rooms.values():
                    tasks.create_task(_run(room))
                tasks.create_task(_listen(platform, store, rooms))
        except BaseExceptionGroup as faults:
            raise _first(faults) from None
        finally:
            await platform.aclose()  # it may have something to remember yet
            await store.aclose()


def _first(faults: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the error that ended the gateway: one with words for people, if there is one."""
    worded = faults.subgroup(SteersmanError)
    fault = (worded or faults).exceptions[0]
    if isinstance(fault, BaseExceptionGroup):
        return _first(cast("BaseExceptionGroup[BaseException]", fault))
    return fault


def _check_names(gateway: str, people: dict[str, Person], platform: Platform) -> None:
    """Raise `ConfigError` for a name in `[people]` that no person on the platform can have."""
    for name in people:
        try:
            platform.sender_of(name)
        except ValueError as error:
            raise ConfigError(
                f"[people]: `{name}` is no name on `{gateway}`: {error}",
                f"correct it: NAME = {{ {gateway} = … }}",
            ) from error


def _check_folder(gateway: str, room: str, options: RoomOptions) -> None:
    """Raise `ConfigError` if a room's folder is not there."""
    if not expanded(options.folder).is_dir():
        raise ConfigError(
            f"gateway `{gateway}`: room `{room}`: no folder `{options.folder}`",
            "make it first, or give another one",
        )


async def _listen(platform: Platform, store: GatewayStore, rooms: dict[str, Room]) -> None:
    """Keep what people do, and wake the room that deals with it."""
    async for event in platform.inbound(store):
        room = rooms.get(event.room)
        if room is not None:
            await _keep(room, event)
            room.came.set()


async def _keep(room: Room, event: Inbound) -> None:
    """Keep what a person did; while that cannot be written it waits, and the room learns why once."""
    is_said = False
    for pause in pauses(FIRST_PAUSE, LONGEST_PAUSE):
        try:
            return await room.store.receive(event.room, _key(event), event)
        except Unwritten as fault:
            log.error("what is said in %s cannot be kept: %s", event.room, fault)
            if not is_said:
                key = f"{_key(event)}:unwritten:{time.time_ns()}"
                await warn(room, key, f"My disk takes nothing now ({fault}): I go on later.")
            is_said = True
            await asyncio.sleep(pause)


def _key(event: Inbound) -> str:
    """Return what distinguishes an event of a room from every other, also when it comes again."""
    match event:
        case Said():
            return f"{event.room}\0{'edit' if event.replaces else 'said'}\0{event.id}"
        case Chosen():
            return f"{event.room}\0chosen\0{event.id}"
        case Removed():
            return f"{event.room}\0removed\0{event.sender}\0{event.message}"
        case Gap():
            return f"{event.room}\0gap\0{event.since}"


async def _run(room: Room) -> Never:
    """Join a room to its session, until this is cancelled. Raises `SteersmanError`."""
    session = RoomSession(room)
    try:
        await session.take_up()
    except SteersmanError as fault:  # the next person who says something there learns of it
        log.warning("room %s: its session is not taken up: %s", room.name, fault.message)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(RoomInbox(room, session).run())
        tasks.create_task(session.follow())
        tasks.create_task(send_all(room))
    raise AssertionError("these tasks do not end")
