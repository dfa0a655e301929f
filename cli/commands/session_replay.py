"""The command `steersman sessions replay`."""

from __future__ import annotations

import os
import sys
from contextlib import closing, nullcontext, redirect_stdout
from typing import Annotated

from ...gateway.home.home import named_session, open_store
from ...gateway.replay.at_home import replayed_in
from ...gateway.replay.replay import ReplayOptions
from ...gateway.replay.wording import replay_data, replay_text
from ...gateway.wording.redaction import redactor_of
from ...machines.errors import UsageError
from ...workflows.paths import Paths
from ..chat import chat
from ..chat_options import ChatOptions
from ..exit_codes import DONE, FAILED
from ..options import Json, Session, flag, option
from ..output import show_either


def replay_session(
    session: Session,
    since: Annotated[
        str, option("TURN", "The turn from which on something is other, as 3 or t3.", "--from")
    ] = "",
    model: Annotated[
        str, option("NAME", "Ask this model in place of the record; tools stay recorded.")
    ] = "",
    agent: Annotated[
        str, option("NAME|FILE", "Decide by another agent, or by that of a configuration file.")
    ] = "",
    routes: Annotated[str, option("TABLE|FILE", "Decide by another routing table.")] = "",
    answer: Annotated[
        list[str] | None, option("Q=CHOICE", "Another answer to a question: q2=deny.", "--answer")
    ] = None,
    say: Annotated[str, option("TEXT", "Say one more sentence at the end.")] = "",
    yes: Annotated[
        bool, flag("--yes", "Allow what is asked about, as the session was run.")
    ] = False,
    live: Annotated[
        bool, flag("--live", "Go on from the difference, in a copy of the folder as it was then.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Decide a recorded session again: models and tools answer from its journal, and nothing is run.

    Exits with 1, and the first difference, if anything is decided otherwise than recorded. What came
    is kept as a session of its own, `replay of ID`, for `sessions show` and `sessions diff`.
    With --live that session goes on, with its model and tools: in a terminal as a chat, where
    `/queue resume` takes up the turn, else by itself, and the exit code is that of its turn.

    Example: steersman sessions replay last --answer q1=deny
    """
    options = ReplayOptions(
        since=since,
        model=model,
        agent=agent,
        routes=routes,
        answers=tuple(_pair(text) for text in answer or ()),
        said=say,
        is_yes=yes,
        is_live=live,
    )
    paths = Paths.of(os.environ)
    with closing(open_store(paths)) as store:
        row = named_session(store, session)
        found = replayed_in(store, row, paths, os.environ, options)
    redactor = redactor_of(os.environ, row.folder)
    show_either(replay_data(found, redactor), replay_text(found, redactor), as_json)
    if not (live and found.difference):
        return DONE if found.difference is None else FAILED
    code, texts = DONE, tuple(filter(None, ("/queue resume", say)))
    if sys.stdin.isatty() and not as_json:
        texts = ("",)  # a person is there, who can be asked
    with redirect_stdout(sys.stderr) if as_json else nullcontext():
        for text in texts:
            on = ChatOptions(resume=found.session, message=text, model=model, is_yes=yes)
            code = chat(on, os.environ) or code
    return code


def _pair(text: str) -> tuple[str, str]:
    """Read `q2=deny`. Raises `UsageError`."""
    question, is_pair, choice = text.partition("=")
    if not (is_pair and question and choice):
        raise UsageError(f"`{text}` is no answer", "a question and a choice: `--answer q1=deny`")
    return question, choice
