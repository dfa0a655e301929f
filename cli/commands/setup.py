"""`steersman setup`: a model is chosen, tried and made the default; a failure changes nothing."""

from __future__ import annotations

import asyncio
import getpass
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Annotated

import typer
from msgspec.structs import asdict, replace

from ...gateway.wording.formats import size_text
from ...gateway.wording.terminal import exposed
from ...machines.errors import ModelError, SteersmanError, UsageError
from ...machines.value import Value
from ...ports.models.choice import COMPATIBLE, beginnings, build
from ...ports.models.endpoint import is_loopback
from ...ports.models.model import Model
from ...ports.models.provider import ModelConfig, model_configs, provider_of
from ...ports.models.served import ServedProvider
from ...ports.models.trial import say_ready
from ...ports.models.weights import catalogue, entry_named, fetched, usual_here
from ...workflows.config import Config, load
from ...workflows.foreign_file import read_text
from ...workflows.own_config import prepare_model
from ...workflows.paths import Paths
from ...workflows.providers import EMBEDDED
from ...workflows.stored_keys import store_key
from ..options import flag, option, taking
from ..output import show, warn
from .models import chosen, models_fetch

NAME = "main"
"""The model that is written."""
KEY = "STEERSMAN_MAIN_API_KEY"
"""The variable as which a key is stored."""
_SHOWN = 20  # models of a list
_REACH = 5.0  # seconds that a server has to accept a connection
_WRITTEN = ("provider", "base_url", "api_key_env", "model", "tool_dialect")
_NOTHING = "nothing was written"


class SetupOptions(Value):
    """The command line of `steersman setup`; `timeout` limits the answer of the model."""

    provider: Annotated[
        str, option("NAME", "anthropic, openai, openrouter, ollama, llama.cpp, local; compatible.")
    ] = ""
    base_url: Annotated[str, option("URL", "The address, of any server with chat completions.")] = (
        ""
    )
    key_env: Annotated[str, option("NAME", "The environment variable that has the key.")] = ""
    key_file: Annotated[str, option("FILE", "A file with the key, which is copied.")] = ""
    model: Annotated[str, option("NAME", "The server's name of the model.")] = ""
    timeout: Annotated[
        float, typer.Option(help="Time limit for the model's answer in seconds.", min=1.0)
    ] = 60.0
    yes: Annotated[bool, flag("--yes", "Ask nothing; replace what is there.")] = False
    untested: Annotated[bool, flag("--untested", "Write it without trying it.")] = False


@taking(SetupOptions)
def setup(options: SetupOptions) -> None:
    """Choose a model, try it, and make it the default of new chats.

    In a terminal it asks for what is left out. A key is kept in a private file, never in config.toml.
    Unless the model answers, nothing is written.

    Example: steersman setup --provider openai --key-file key.txt --model gpt-5-mini
    """
    paths = Paths.of(os.environ)
    config = load(paths, Path.cwd(), os.environ)
    asked = _Setup(options, os.environ, paths)
    found, secret = asked.with_key(asked.beginning())
    known = {**os.environ, **({KEY: secret} if secret else {})}
    found = asked.with_model(found, known)
    write = _prepared(paths, config, found)
    asked.confirm(config, found)
    if not options.untested:
        asked.try_out(found, known)
    if secret:
        show(f"The key is in {store_key(paths, KEY, secret)}, which only you can read.")
    show(f"[models.{NAME}] is in {write()}.")
    _, choice = chosen(os.environ)
    if choice.name == NAME:
        show(
            "A chat uses it: `steersman chat`, or, for one that is open already, leave it and "
            "`steersman chat --continue`. `steersman models check` tests what else it can do."
        )
    else:  # another file says otherwise
        there = "`steersman config path` lists the files."
        warn(f"A chat here still has another: {choice.line}. {there}")


class _Setup:
    """The questions, and what their answers lead to; a person is asked only in a terminal."""

    def __init__(self, options: SetupOptions, environ: Mapping[str, str], paths: Paths) -> None:
        self._options = options
        self._environ = environ
        self._paths = paths
        self._can_ask = sys.stdin.isatty() and sys.stdout.isatty() and not options.yes

    def beginning(self) -> ModelConfig:
        """Choose a provider, and the address of one that has none."""
        known = beginnings()
        name = self._options.provider or (COMPATIBLE if self._options.base_url else "")
        if not name and self._can_ask:
            name = self._pick("Which provider?", [*known], is_open=False)
        if name not in known:
            problem = f"there is no provider `{name}`" if name else "which provider?"
            raise UsageError(problem, f"`--provider` is one of {', '.join(known)}")
        model = known[name]
        url = self._options.base_url or model.base_url
        if name == COMPATIBLE and not url and self._can_ask:
            url = self._ask("Address of the server, as http://127.0.0.1:8080/v1: ")
        if name == COMPATIBLE and not url:
            raise UsageError("at which address is the server?", "give `--base-url URL`")
        return replace(model, name=NAME, base_url=_with_scheme(url))

    def with_key(self, model: ModelConfig) -> tuple[ModelConfig, str]:
        """Return the model with the variable of its key, and the key if it has to be stored."""
        options, usual = self._options, model.api_key_env
        needs = usual if model.base_url in {each.base_url for each in beginnings().values()} else ""
        if variable := options.key_env:
            if not self._environ.get(variable):
                raise UsageError(f"`{variable}` is not set", f"export it; {_NOTHING}")
            return replace(model, api_key_env=variable), ""
        key = ""
        if options.key_file:
            try:
                key = read_text(options.key_file).strip()
            except (OSError, ValueError) as error:
                raise UsageError(
                    f"`{options.key_file}` cannot be read: {error}", _NOTHING
                ) from error
        elif usual and self._environ.get(usual):
            warn(f"the key is that of {usual} in the environment")
            return model, ""
        elif self._can_ask and (usual or model.base_url):
            key = getpass.getpass(f"Key{'' if needs else ' (Enter: none)'}: ").strip()
        if needs and not key:
            raise UsageError(
                "which key?", f"give `--key-file FILE` or `--key-env {needs}`; {_NOTHING}"
            )
        if any(not sign.isprintable() or sign.isspace() or not sign.isascii() for sign in key):
            raise UsageError("this is no key: it has blanks, or more than one line", _NOTHING)
        return replace(model, api_key_env=KEY if key else ""), key

    def with_model(self, model: ModelConfig, environ: Mapping[str, str]) -> ModelConfig:
        """Choose one of the models that the server lists, or of the catalogue."""
        provider = provider_of(model)
        usual, listed = model.model, [entry.name for entry in catalogue()]
        if isinstance(provider, ServedProvider):
            warn(f"asking {model.base_url} for its models")
            listed = asyncio.run(provider.offered(model, environ))
            if not (listed or self._options.model or self._options.untested):
                found = provider.reach(model, environ, _REACH)
                if found.status == "bad":
                    said = found.text or "no server was found"
                    raise ModelError(said, f"{found.hint}; {_NOTHING}")
                warn("it named none, or did not answer: a model can be typed all the same")
        else:
            usual = usual_here(self._paths.cache).entry.name
        name = self._options.model
        if not name and self._can_ask:
            name = self._pick("Which model?", listed, usual)
        name = name or (usual if not listed or usual in listed else "")
        name = name or (listed[0] if len(listed) == 1 else "")
        if not name:
            some = (
                f"one of {', '.join(listed[:_SHOWN])}" if listed else "a name that the server knows"
            )
            raise UsageError("which model?", f"`--model` is {some}; {_NOTHING}")
        if listed and name not in listed:
            warn(f"`{name}` is not among the {len(listed)} models that are listed")
        return replace(model, model=name)

    def confirm(self, config: Config, model: ModelConfig) -> None:
        """Ask before another model is replaced, and before weights are fetched, which is done then."""
        before = model_configs(config.models).get(NAME)
        if before is not None and before != model:
            what = f"[models.{NAME}] is there already: {before.model or before.provider}"
            self._agree(what, "Replace it?", "`--yes` replaces it")
        entry = entry_named(model.model) if model.provider == EMBEDDED else None
        if entry is not None and not fetched(entry, self._paths.cache):
            what = f"the weights of {entry.title} are not here: {size_text(entry.size)}"
            self._agree(what, "Fetch them?", "`--yes` fetches them")
            models_fetch(entry.name)

    def try_out(self, model: ModelConfig, environ: Mapping[str, str]) -> None:
        """Have the model say one word; raises what is wrong unless the person insists."""
        warn(f"asking {model.model} for one word")
        try:
            asyncio.run(self._word(build(model, self._paths.cache, environ)))
        except SteersmanError as error:
            error.hint = f"{error.hint}; {_NOTHING}: `--untested` writes it all the same"
            if not self._can_ask:
                raise
            warn(f"steersman: {error}\n  {error.hint}")
            self._agree("the model did not answer as it should", "Write it all the same?", _NOTHING)

    async def _word(self, model: Model) -> None:
        async with aclosing(model):
            await say_ready(model, self._options.timeout, warn)

    def _agree(self, what: str, question: str, otherwise: str) -> None:
        """Go on only with a yes; raises `UsageError` else."""
        if self._options.yes:
            return
        if not self._can_ask or self._ask(f"{what}. {question} [y/N] ").lower() not in ("y", "yes"):
            raise UsageError(what, otherwise if not self._can_ask else _NOTHING)

    def _pick(
        self, question: str, names: Sequence[str], usual: str = "", *, is_open: bool = True
    ) -> str:
        """Have one of a numbered list chosen; `is_open`: or any other name."""
        show(question)
        for number, name in enumerate(names[:_SHOWN], 1):
            show(f"{number:3}. {exposed(name)}")
        if len(names) > _SHOWN:
            show(f"     … and {len(names) - _SHOWN} more")
        usual = usual if usual in names or not names else ""
        usual = usual or (names[0] if len(names) == 1 else "")
        while True:
            said = self._ask(f"Number or name{f' (Enter: {usual})' if usual else ''}: ") or usual
            if said.isdecimal() and 0 < int(said) <= len(names):
                return names[int(said) - 1]
            if said in names or (said and is_open):
                return said
            if said:
                show(f"`{exposed(said)}` is not in the list. It has 1 to {len(names)}, or a name.")

    def _ask(self, question: str) -> str:
        print(question, end="", flush=True)
        if not (line := sys.stdin.readline()):
            raise UsageError("there was no answer", _NOTHING)
        return line.strip()


def _with_scheme(url: str) -> str:
    """Return an address with `http://`, or `https://` to another machine, where it has neither."""
    if not url or "://" in url:
        return url
    local = f"http://{url}"
    return local if is_loopback(local) else f"https://{url}"


def _prepared(paths: Paths, config: Config, model: ModelConfig) -> Callable[[], Path]:
    """Return what writes the model; a configuration that cannot be edited is found early."""
    table = {name: value for name, value in asdict(model).items() if name in _WRITTEN and value}
    if model.provider != EMBEDDED:
        del table["tool_dialect"]
    agent = config.default_agent if config.default_agent in config.agents else "assistant"
    return prepare_model(paths, NAME, table, agent)
