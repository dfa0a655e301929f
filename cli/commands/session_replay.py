"""The command `steersman sessions replay`."""

from __future__ import annotations

import os
from contextlib import closing
from typing import Annotated

from ...gateway.home.home import named_session, open_store
from ...gateway.replay.replay import ReplayOptions, replay_data, replay_text, replayed_in
from ...gateway.wording.redaction import redactor_of
from ...machines.errors import UsageError
from ...workflows.paths import Paths
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
    agent: Annotated[str, option("NAME", "Decide by another agent's tools and limits.")] = "",
    routes: Annotated[str, option("TABLE", "Decide by another routing table.")] = "",
    answer: Annotated[
        list[str] | None, option("Q=CHOICE", "Another answer to a question: q2=deny.", "--answer")
    ] = None,
    say: Annotated[str, option("TEXT", "Say one more sentence at the end.")] = "",
    yes: Annotated[
        bool, flag("--yes", "Allow what is asked about, as the session was run.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Decide a recorded session again: models and tools answer from its journal, and nothing is run.

    Exits with 1, and the first difference, if anything is decided otherwise than recorded. What came
    is kept as a session of its own, `replay of ID`, for `sessions show` and `sessions diff`.

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
    )
    paths = Paths.of(os.environ)
    with closing(open_store(paths)) as store:
        row = named_session(store, session)
        found = replayed_in(store, row, paths, os.environ, options)
    redactor = redactor_of(os.environ, row.folder)
    show_either(replay_data(found, redactor), replay_text(found, redactor), as_json)
    return DONE if found.difference is None else FAILED


def _pair(text: str) -> tuple[str, str]:
    """Read `q2=deny`. Raises `UsageError`."""
    question, is_pair, choice = text.partition("=")
    if not (is_pair and question and choice):
        raise UsageError(f"`{text}` is no answer", "a question and a choice: `--answer q1=deny`")
    return question, choice
