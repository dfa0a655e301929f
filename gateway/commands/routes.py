"""`/routes`: shows and chooses a session's routing tables, and explains their decision on a message."""

from __future__ import annotations

from typing import Annotated

from ...journal.codec import decode
from ...journal.record import SessionRecord
from ...machines import protocol as m
from ...machines.errors import SteersmanError
from ...machines.policy import RoutesChoice
from ...workflows.suggestions import table_names
from ..client import SessionClient
from ..host.router import routes_of
from ..views.dry_run import as_said, draw_explanation, explanation, state_of
from .command import Argument, Reply, Text, command


def _record(client: SessionClient) -> SessionRecord:
    return decode(SessionRecord, client.view.state())


@command("routes", "settings", "Show or choose the routing table; explain what a message would do.")
def routes(client: SessionClient) -> Reply:
    """Show the routing table of the session."""
    record = _record(client)
    table, notice = routes_of(client.host.config, record.routes)
    by = "this session" if record.routes else "the configuration"
    text = f"The routing table is `{table.name}`, by {by}. {table.doc}"
    data = {"table": table.name, "is_chosen": record.routes is not None, "notice": notice}
    return Reply(data=data, text=f"{text}\n{notice}".rstrip())


@routes.verb("use", "Go by another routing table from now on.")
def use_routes(
    client: SessionClient,
    name: Annotated[str, Argument("NAME")],
    *,
    unsafe: Annotated[bool, Argument("--unsafe")] = False,
) -> Reply:
    """Choose a table for this session; `--unsafe`: also a table that breaks a safety rule."""
    if name not in table_names():
        return Reply(ok=False, text=f"Use which table? {', '.join(table_names())}.")
    choice = RoutesChoice(table=name, may_be_unsafe=unsafe)
    from ...workflows.routing import refusals

    if not unsafe and (faults := refusals(name)):
        why = "\n".join(f"  {fault.message}" for fault in faults)
        text = f"Table `{name}` breaks safety rules, and is used only with --unsafe:\n{why}"
        return Reply(
            ok=False, data={"table": name, "faults": [fault.message for fault in faults]}, text=text
        )
    try:
        table, notice = routes_of(client.host.config, choice)
    except SteersmanError as error:
        return Reply(ok=False, text=str(error))
    answer = client.ask(m.PolicyChange(routes=choice))
    if not answer.get("ok", True):
        return Reply(ok=False, data=answer, text=str(answer.get("reason")))
    client.host.runtime.reroute(client.session, table)
    text = f"This session goes by the routing table `{name}` from now on. {table.doc}"
    return Reply(data={"ok": True, "table": name}, text=f"{text}\n{notice}".rstrip())


@routes.verb("explain", "Say what a message would do, without sending it.")
def explain_route(client: SessionClient, text: Text) -> Reply:
    """Explain the outcome of a message without sending it."""
    record = _record(client)
    here = client.describe()
    table, _ = routes_of(client.host.config, record.routes)
    found, to, _ = as_said(text, "auto", client.texts.classify)
    doing, company = state_of(record, here.detached)
    data = explanation(table, text, found, doing, here.policy, company, to)
    return Reply(data=data, text=draw_explanation(data))
