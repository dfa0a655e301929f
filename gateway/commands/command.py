"""Slash commands: each is a function that is declared once.

Everything else is made from the declaration: the parser of the typed line, completion, `/help`,
`docs/commands.md`, the command line's form of it (`cli/commands/session_command.py`), whose help is the
function's docstring, the list of commands for an editor, and the calls that come as data from the control
socket, `chat --json` and HTTP. Keys and programs do not send the text `/queue edit 2 TEXT`, but
`queue_edit(2, "TEXT")`, a `CommandCall`, which the type checker has checked.

To add a command
----------------
1. Write a function in a module of this folder, or in a new module: all of them are imported. Its first
   parameter is the session's client, the others are the typed arguments, and their types say how they
   are read (see `Argument`). It returns a `Reply`: data for programs, text for people.

       @command("ping", "session", "Say that the session is there.")
       def ping(client: SessionClient, name: Text = "") -> Reply:
           answer = client.host.config.commands.of("ping_answer", str)
           return Reply(data={"answer": answer}, text=f"{answer} {name}".rstrip())

   `@queue.verb("edit", …)` declares a verb of `/queue`, of the same group, for the same people.
2. A setting of the command is a key with its default and a comment in `[commands]` of `config.toml`. Its
   type is that of its default, so nothing else declares it.
3. Write a test that checks the command's data, marked `checks_data`: `tests/house/test_commands.py` fails
   for a command without one.
4. Run `make docs`: `make check` fails until `docs/commands.md` and `docs/configuration.md` have it.
"""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable, Mapping
from functools import cached_property
from io import StringIO
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Concatenate,
    Generic,
    Literal,
    ParamSpec,
    get_args,
    get_origin,
)

from msgspec import Struct, field
from msgspec.structs import asdict, replace

from ...machines.errors import UsageError
from ...machines.value import Value

if TYPE_CHECKING:
    from ..client import SessionClient

P = ParamSpec("P")
Q = ParamSpec("Q")

Group = Literal["talk", "queue", "agents", "goal", "files", "settings", "session"]
GROUPS: dict[Group, str] = {
    "talk": "Talk to the agent",
    "queue": "What waits",
    "agents": "Subagents",
    "goal": "Goals",
    "files": "Files",
    "settings": "Settings of the session",
    "session": "The session",
}
"""The headings under which commands are listed, in their order."""


class Reply(Value):
    """The reply of a command: `data` for programs, `text` for people.

    `news` is what others who follow the session read, if the command changed something of theirs.
    `leaves`: the interface in which the command was typed ends.
    """

    ok: bool = True
    data: dict[str, Any] = field(default_factory=dict[str, Any])
    text: str = ""
    news: str = ""
    leaves: bool = False


class Argument(Value, kw_only=False):
    """How a parameter is typed and shown; `Annotated[int, Argument("N")]`.

    A positional parameter is one word, without its quotes: a `str`, an `int`, or a value of a `Literal`;
    with `is_rest` it is the rest of the line, as it was typed. A keyword-only parameter is an option: a
    `bool` is a flag, a tuple may be repeated. `of` is the kind of names that complete it: those of the
    `queue`, a `question`, a `choice` of it, a `subagent`, another `session`, a `model`; a `file` is
    relative to where the command is typed. `help` explains it on the command line.
    """

    shown: str
    is_rest: bool = False
    of: str = ""
    help: str = ""


Text = Annotated[str, Argument("TEXT", is_rest=True)]
Number = Annotated[int, Argument("N", of="queue", help="The number in the list.")]
NumberOrLast = Annotated[
    int | None, Argument("N", of="queue", help="Its number; if left out, the last.")
]


class Parameter(Argument, kw_only=True):
    """One parameter of a command; `type` is that of one value, `choices` are the allowed values."""

    name: str
    type: type[Any]
    choices: tuple[str, ...]
    default: Any
    is_option: bool
    is_repeated: bool

    @property
    def is_needed(self) -> bool:
        """Whether the parameter must be given."""
        return self.default is inspect.Parameter.empty

    @property
    def option(self) -> str:
        """The name of the option: `--turns`."""
        return self.shown.partition(" ")[0]

    @property
    def usage(self) -> str:
        """The parameter in a usage line: `N`, `[--all]`."""
        return self.shown if self.is_needed else f"[{self.shown}]"

    def read(self, word: str) -> Any:
        """Read one value from a typed word. Raises `ValueError`."""
        if self.choices:
            if word.lower() not in self.choices:
                raise ValueError(f"`{word}` is not one of {', '.join(self.choices)}")
            return word.lower()
        if self.type is str:
            return word
        try:
            return self.type(word.removeprefix("#"))
        except ValueError:
            raise ValueError(f"`{word}` is not a number") from None

    def check(self, value: Any) -> Any:
        """Return a value that came as data; null means the default. Raises `ValueError`."""
        if value is None and not self.is_needed:
            return self.default
        if self.is_repeated and isinstance(value, list):
            return tuple(self._checked(item) for item in value)  # pyright: ignore[reportUnknownVariableType]
        return self._checked(value)

    def _checked(self, value: Any) -> Any:
        kinds = (int, float) if self.type is float else self.type
        is_bool = isinstance(value, bool) and self.type is not bool
        if not isinstance(value, kinds) or is_bool or (self.choices and value not in self.choices):
            raise ValueError(f"`{self.name}` cannot be {value!r}")
        return value


class CommandCall(Value):
    """A command with its arguments, in place of a line to parse."""

    command: Command[...]
    arguments: Mapping[str, Any]

    def run(self, client: SessionClient) -> Reply:
        """Run the command; where it has put another session in this one's place, the data name both."""
        before = client.session
        reply = self.command.function(client, **self.arguments)
        if client.session == before:
            return reply
        return replace(reply, data={"session": client.session, "left": before, **reply.data})


class Command(Struct, Generic[P], eq=False, dict=True):
    """One slash command; calling it with its arguments returns a `CommandCall`.

    `is_urgent`: the command does not wait for earlier messages. `is_shared`: whoever may speak in the
    session may give it, since it changes nothing but the session, which decides itself who may do that;
    any other touches files, starts programs or changes settings, and is for those who may approve.
    `says`: with a text it is not a command but a message, which is sent as that. `verbs` are the commands
    whose names begin with this one's.
    """

    name: str
    group: Group
    doc: str
    function: Callable[Concatenate[SessionClient, P], Reply]
    aliases: tuple[str, ...] = ()
    is_urgent: bool = False
    is_shared: bool = False
    says: str = ""
    verbs: dict[str, Command[...]] = field(default_factory=dict[str, Any])

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> CommandCall:
        """Return the call with these arguments."""
        names = (parameter.name for parameter in self.parameters if not parameter.is_option)
        return CommandCall(
            command=self, arguments={**dict(zip(names, args, strict=False)), **kwargs}
        )

    def verb(
        self, name: str, doc: str
    ) -> Callable[[Callable[Concatenate[SessionClient, Q], Reply]], Command[Q]]:
        """Declare a function as a verb of this command, in its group and for the same people."""
        return command(f"{self.name} {name}", self.group, doc, is_shared=self.is_shared)

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters of the command, from the function's signature."""
        names = {"SessionClient": object}  # which a module may import for types alone
        found = inspect.signature(self.function, locals=names, eval_str=True).parameters
        return tuple(_parameter(parameter) for parameter in [*found.values()][1:])

    @property
    def usage(self) -> str:
        """The arguments after the command's name, with those of its verbs."""
        if not self.verbs:
            return self.own_usage
        verbs = [f"{name} {verb.usage}".strip() for name, verb in self.verbs.items()]
        return f"[{'|'.join([self.own_usage, *verbs] if self.own_usage else verbs)}]"

    @property
    def own_usage(self) -> str:
        """The arguments after the command's name without a verb."""
        options = [parameter.usage for parameter in self.parameters if parameter.is_option]
        others = [parameter.usage for parameter in self.parameters if not parameter.is_option]
        return " ".join([*options, *others] if self._takes_rest else [*others, *options])

    @property
    def _takes_rest(self) -> bool:
        return any(parameter.is_rest for parameter in self.parameters)

    def parse(self, text: str) -> CommandCall:
        """Read the text after the name. Raises `UsageError`, whose message is a complete reply."""
        first, _, rest = text.strip().partition(" ")
        verb = self.verbs.get(first.lower())
        if verb is not None and (verb.parameters or not rest.strip() or not self._takes_rest):
            return verb.parse(rest)
        if verb is None and self.verbs and first and not self.parameters:
            raise UsageError(f"No `/{self.name} {first}`. There are: {', '.join(self.verbs)}.")
        try:
            return CommandCall(command=self, arguments=_read(self.parameters, text))
        except ValueError as error:
            usage = f"/{self.name} {self.own_usage}".rstrip()
            raise UsageError(f"{error}: {usage}.") from None

    def call(self, arguments: Mapping[str, Any]) -> CommandCall:
        """Return the call with arguments that came as data. Raises `ValueError`."""
        known = {parameter.name: parameter for parameter in self.parameters}
        if unknown := arguments.keys() - known.keys():
            raise ValueError(f"`{self.name}` has no argument `{min(unknown)}`")
        for name, parameter in known.items():
            if parameter.is_needed and name not in arguments:
                raise ValueError(f"`{self.name}` needs `{name}`")
        return CommandCall(
            command=self, arguments={name: known[name].check(arguments[name]) for name in arguments}
        )


def _read(parameters: tuple[Parameter, ...], text: str) -> dict[str, Any]:
    """Read one line: options come before a text, else anywhere. Raises `ValueError`."""
    options = {parameter.option: parameter for parameter in parameters if parameter.is_option}
    others = [parameter for parameter in parameters if not parameter.is_option]
    rest, has_options, values = text.strip(), bool(options), dict[str, Any]()
    while rest:
        if has_options and rest.startswith("--"):
            word, after = _word(rest)
            has_options = word != "--"  # the rest is text, also if it looks like an option
            rest = _read_option(options, word, after, values) if has_options else after
        elif not others:
            break
        elif others[0].is_rest:
            values[others.pop(0).name], rest = rest, ""
        elif others[0].is_repeated:
            word, rest = _word(rest)
            name = others[0].name
            values[name] = (*values.get(name, ()), others[0].read(word))
        else:
            word, rest = _word(rest)
            values[others[0].name] = others[0].read(word)
            others.pop(0)
    if rest:
        raise ValueError(f"`{rest}` makes no sense here")
    for parameter in parameters:
        if parameter.is_needed and parameter.name not in values:
            raise ValueError(f"{parameter.shown} is missing")
    return values


def _read_option(
    options: Mapping[str, Parameter], word: str, rest: str, values: dict[str, Any]
) -> str:
    """Add the value of an option to those that were read; return what is behind it."""
    name, has_value, value = word.partition("=")
    option = options.get(name)
    if option is None:
        known = ", ".join(options)
        raise ValueError(
            f"`{name}` is not one of {known}; write `--` before a text that begins like an option"
        )
    if option.type is bool:
        values[option.name] = True
        return rest
    if not has_value:
        if not rest:
            raise ValueError(f"`{name}` needs a value")
        value, rest = _word(rest)
    try:
        read = option.read(value)
    except ValueError:
        raise ValueError(f"`{name} {value}` is no number") from None
    before = values.get(option.name, ())
    values[option.name] = (*before, read) if option.is_repeated else read
    return rest


def _word(text: str) -> tuple[str, str]:
    """Split the first word off a text, with quotes and backslashes as in a shell."""
    stream = StringIO(text)
    words = shlex.shlex(stream, posix=True)
    words.whitespace_split, words.commenters = True, ""
    try:
        word = words.get_token() or ""
    except ValueError as error:
        raise ValueError(f"`{text}` can't be read: {error}") from None
    return word, stream.read().strip()


def _parameter(found: inspect.Parameter) -> Parameter:
    kind, about, is_repeated = found.annotation, Argument(found.name.upper()), False
    while get_args(kind) and get_origin(kind) is not Literal:  # down to the type of one value
        is_repeated = is_repeated or get_origin(kind) is tuple
        notes = get_args(kind)[1:] if get_origin(kind) is Annotated else ()
        about = next((note for note in notes if isinstance(note, Argument)), about)
        kind = get_args(kind)[0]
    choices: tuple[str, ...] = get_args(kind) if get_origin(kind) is Literal else ()
    if choices and about.shown == found.name.upper():
        about = replace(about, shown="|".join(choices))
    return Parameter(
        **asdict(about),
        name=found.name,
        type=str if choices else kind,
        choices=choices,
        default=found.default,
        is_option=found.kind is inspect.Parameter.KEYWORD_ONLY,
        is_repeated=is_repeated,
    )


DECLARED: dict[str, Command[...]] = {}
"""Every command by its full name, in the order of declaration; `registry.py` imports all modules."""


def command(
    name: str,
    group: Group,
    doc: str,
    *aliases: str,
    is_urgent: bool = False,
    is_shared: bool = False,
    says: str = "",
) -> Callable[[Callable[Concatenate[SessionClient, P], Reply]], Command[P]]:
    """Declare a function as a command; `doc` is its line in `/help`."""

    def declare(function: Callable[Concatenate[SessionClient, P], Reply]) -> Command[P]:
        made = Command(
            name,
            group,
            doc,
            function,
            aliases,
            is_urgent=is_urgent,
            is_shared=is_shared,
            says=says,
        )
        DECLARED[name] = made
        return made

    return declare
