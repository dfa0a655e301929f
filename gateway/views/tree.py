"""A session's dump as a tree for people: as lines for a terminal, and as an SVG picture.

The tree shows what each part of the session does, since when, and what it waits for. `Branch` is the
tree as data; `draw` and `tree_picture` draw any such tree.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from html import escape
from typing import Any

from msgspec import Struct, field

from ...machines import protocol as m
from ...machines.protocol import shown
from ...ports.tools.text import counted
from ..wording.formats import call_words, clock, iso, item_state, progress_text
from ..wording.terminal import audited

_TEXT = 80  # characters of a message

_COLOURS = {  # by the code of the colour: green, yellow, red, grey
    "32": ("running", "busy", "working", "acting", "calling", "open", "active"),
    "33": ("pending", "held", "waiting", "asking", "stopping", "interrupting", "offered"),
    "31": ("interrupted", "failed", "unknown", "crashed", "killed", "timed_out", "cancelled"),
    "90": ("idle", "suspended", "finalized", "completed", "done", "withdrawn", "steered"),
}
_CODE_OF = {state: code for code, states in _COLOURS.items() for state in states}

ROW, INDENT, CHAR, PAD = 30, 26, 7.3, 12  # pixels of a picture
MOST = 110  # columns of a line in a picture

_TONES = {
    ("running", "busy", "working", "acting", "calling", "active"): "#c8e6c9",
    ("pending", "held", "waiting", "asking", "stopping", "interrupting", "offered"): "#fff3c4",
    ("interrupted", "failed", "unknown", "killed", "timed_out", "cancelled"): "#ffcdd2",
}
_TONE_OF = {state: tone for states, tone in _TONES.items() for state in states}
_OTHER = "#eceff1"
_FONT = "font-family='ui-monospace,Menlo,Consolas,monospace' font-size='12'"


class Branch(Struct, kw_only=True):
    """One line of a tree: the part, its state, its details; `twigs` are the lines below it."""

    title: str
    state: str = ""
    about: str = ""
    twigs: list[Branch] = field(default_factory=list["Branch"])

    @property
    def parts(self) -> list[str]:
        """The title, the state and the details, each safe to print and on one line.

        Two spaces separate details.
        """
        return [
            "  ".join(
                " ".join(piece.split()) for piece in audited(part).split("  ") if piece.strip()
            )
            for part in (self.title, self.state, self.about)
        ]


# Lines for a terminal -----------------------------------------------------------------------------


def draw(
    branch: Branch, width: int = 0, lead: str = "", below: str = "", *, is_coloured: bool = False
) -> Iterator[str]:
    """Draw a tree, line by line; `width` in columns, 0 for no limit."""
    yield _line(branch, lead, width, is_coloured)
    for number, twig in enumerate(branch.twigs, 1):
        is_last = number == len(branch.twigs)
        fork, rule = ("└ ", "  ") if is_last else ("├ ", "│ ")
        yield from draw(twig, width, below + fork, below + rule, is_coloured=is_coloured)


def _line(branch: Branch, lead: str, width: int, is_coloured: bool) -> str:
    parts = branch.parts
    text = cut(lead + "  ".join(filter(None, parts)), width)
    if not is_coloured:
        return text
    at = len(lead) + len(parts[0])
    title, rest = text[len(lead) : at], text[at:]
    code = _CODE_OF.get(branch.state.lower().strip("[]"), "")
    if code and parts[1] and rest.startswith(f"  {parts[1]}"):
        rest = f"  \x1b[{code}m{parts[1]}\x1b[0m{rest[2 + len(parts[1]) :]}"
    return f"\x1b[90m{text[: len(lead)]}\x1b[0m\x1b[1m{title}\x1b[0m{rest}"


def cut(text: str, width: int) -> str:
    """Cut a line at a width in columns, and mark the cut; 0 cuts nothing."""
    if not width or width_of(text) <= width:
        return text
    while text and width_of(text) > width - 1:
        text = text[:-1]
    return f"{text}…"


def width_of(text: str) -> int:
    """Count the columns that a text takes: wide characters two, combining characters none."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return len(text) + wide - sum(unicodedata.combining(char) > 0 for char in text)


# The tree of a dump -------------------------------------------------------------------------------


def draw_dump(data: dict[str, Any], width: int = 0, *, is_coloured: bool = False) -> str:
    """Draw a session's dump as text; in its texts, what acts on a terminal is shown as escapes."""
    lines = list(draw(tree_of(data), width, is_coloured=is_coloured))
    if data.get("transitions"):
        lines += ["", "last transitions:"]
    for transition in data.get("transitions", ()):
        moved = f"{transition['from'] or '(new)'} -> {transition['to']}"
        moment = f"{transition['seq']:>5}  {clock(transition['time'])}"
        line = f"  {moment}  {transition['what']}: {moved}  ({transition['cause']})"
        lines.append(cut(audited(line), width))
    for letter in data.get("dead_letters") or ():
        line = f"actor {letter['actor']} died of {letter['message']}: {letter['reason']}"
        lines.append(cut(audited(line), width))
    return "\n".join(lines)


def tree_of(data: dict[str, Any]) -> Branch:
    """Return the tree of a dump: facts, queue, turn, run, interrupts, goal, children, actors."""
    actors = data.get("actors", {})
    since = actors.get("session", {}).get("since", "")
    owner, name = data.get("owner"), data.get("name", "")
    unowned = ", no live process owns it" if data.get("lease") else ""
    process = f", process {owner['pid']}" if owner else unowned
    about = f"(entry {data.get('seq', 0)}, since {clock(since)}{process})" if since else ""
    title = f"session {data['id']}" + (f' "{name}"' if name else "")
    twigs = [
        *_facts(data),
        _queue(data),
        *_turns(data),
        *_run(data),
        *_stops(data),
        *_goal(data),
        *_children(data),
    ]
    twigs += [_actor(name, actor) for name, actor in actors.items()]
    return Branch(title=title, state=data.get("state", "idle"), about=about, twigs=twigs)


def _facts(data: dict[str, Any]) -> Iterator[Branch]:
    yield Branch(title="folder", state="", about=data.get("folder", ""))
    usage = data.get("usage", {})
    spent = f"  {usage.get('input', 0)} tokens in, {usage.get('output', 0)} out" if usage else ""
    model = f"  model {data['model']}" if data.get("model") else ""
    about = f"{data.get('agent', '')}{model}  {counted(data.get('messages', 0), 'message')}{spent}"
    yield Branch(title="agent", state="", about=about)


def _queue(data: dict[str, Any]) -> Branch:
    queue = data.get("queue", {})
    items = queue.get("items", {})
    live = [items[name] for name in queue.get("order", ())]
    twigs = [
        Branch(
            title=f"#{item['number']}",
            state=item_state(_goes_to(item)),
            about=shown(m.ItemKind(item.get("kind", m.ItemKind.MESSAGE)), item["said"]["text"])[
                :_TEXT
            ]
            + progress_text(item.get("progress"))
            + (f"  from {user}" if (user := item["said"].get("user")) else "")
            + ("  being edited" if item.get("editor") else ""),
        )
        for item in live
    ]
    return Branch(
        title="queue", state=queue.get("state", "open"), about=f"{len(live)} there", twigs=twigs
    )


def _goes_to(item: dict[str, Any]) -> dict[str, Any]:
    """Return the state of a message, and where it goes if it is a steer."""
    where = {"turn": item.get("for_turn"), "children": list(item.get("for_children", ()))}
    return {"state": item.get("state", "pending"), **{key: to for key, to in where.items() if to}}


def _turns(data: dict[str, Any]) -> Iterator[Branch]:
    turn = data.get("turns", {}).get(data.get("turn", ""))
    if turn is None:
        return
    calls = [_call(call) for call in turn.get("calls", {}).values()]
    since = f"since {clock(iso(turn['since']))}" if turn.get("since") else ""
    reason = f"  {turn['reason']}" if turn.get("reason") else ""
    about = f"step {turn.get('step', 0)}  {since}{reason}"
    yield Branch(
        title=f"turn {turn['id']}", state=turn.get("state", "boundary"), about=about, twigs=calls
    )


def _call(call: dict[str, Any]) -> Branch:
    words = ", ".join(call_words(call.get("arguments", {})))
    pid = f"process {call['pid']}  " if call.get("pid") else ""
    title = f"call {call['id']} {call['tool']}"
    return Branch(title=title, state=call.get("state", "requested"), about=f"{pid}{words[:_TEXT]}")


def _run(data: dict[str, Any]) -> Iterator[Branch]:
    """Show a workflow's run: each step that has begun or ended, and its calls that run."""
    if run := data.get("run"):
        reason = f"  {run['reason']}" if run.get("reason") else ""
        known = list(run["open"].values())
        twigs = [_step(step, known) for step in run["steps"].values()]
        yield Branch(
            title=f"run of {run['workflow']['name']}", state=run["state"], about=reason, twigs=twigs
        )


def _step(step: dict[str, Any], known: list[dict[str, Any]]) -> Branch:
    counts = f"{step['marks'].count('d')}/{len(step['marks'])}  " if step["is_many"] else ""
    twigs = [_attempt(step, attempt) for attempt in known if attempt["step"] == step["id"]]
    return Branch(
        title=f"step {step['id']}",
        state=step["state"],
        about=f"{counts}{step['reason']}",
        twigs=twigs,
    )


def _attempt(step: dict[str, Any], attempt: dict[str, Any]) -> Branch:
    index, call = attempt["index"], attempt["call"]
    pid, child = step.get("pids", {}).get(call), step["children"].get(str(index))
    parts = [
        f"process {pid}" if pid else "",
        f"child {child}" if child else "",
        str(step["items"][index])[:_TEXT] if step["is_many"] else "",
    ]
    return Branch(title=f"call {call}", state="running", about="  ".join(filter(None, parts)))


def _stops(data: dict[str, Any]) -> Iterator[Branch]:
    """Show the interrupts that have not ended."""
    for interrupt in data.get("stops", {}).values():
        if interrupt.get("state") in ("planned", "stopping"):
            yield Branch(
                title=f"interrupt {interrupt['id']}",
                state=interrupt["state"],
                about=f"by {interrupt['order']['cause']}",
            )


def _goal(data: dict[str, Any]) -> Iterator[Branch]:
    goals = data.get("goals", {})
    goal = goals.get("goals", {}).get(goals.get("current", ""))
    if goal is not None:
        used = goal["turns_total"] - goal.get("base_turns", 0)
        spent = f"turn {used}/{goal['max_turns']}"
        yield Branch(title="goal", state=goal["state"], about=f"{spent}  {goal['text'][:_TEXT]}")


def _children(data: dict[str, Any]) -> Iterator[Branch]:
    inner = data.get("subagents", {})
    for child in data.get("children", {}).values():
        beneath = [tree_of(inner[child["name"]])] if child["name"] in inner else []
        about = f"{child['session']}  {child['task'][:_TEXT]}"
        yield Branch(
            title=f"child {child['name']}", state=child["state"], about=about, twigs=beneath
        )


def _actor(name: str, actor: dict[str, Any]) -> Branch:
    """Show the report of an actor; what is not known, and what is usual, is left out."""
    mail: dict[str, int] = actor["mailbox"] or {}
    waiting = [f"{count} {lane}" for lane, count in mail.items() if count]
    parts = [
        f"journal: {actor['differs'] or 'nothing'}" if "differs" in actor else "",
        actor["supervised"] if actor["supervised"] not in (None, "running") else "",
        f"waits for {actor['waiting_for']}" if actor["waiting_for"] else "",
        f"by rule {actor['rule']}" if actor["rule"] else "",
        f"unread {', '.join(waiting)}" if waiting else "",
        f"last {actor['last_message']}" if actor["last_message"] else "",
        f"restarts {actor['restarts']}" if actor["restarts"] else "",
    ]
    state = actor["state"] or ""
    return Branch(title=f"actor {name}", state=state, about="  ".join(filter(None, parts)))


# An SVG picture -----------------------------------------------------------------------------------


def tree_picture(tree: Branch) -> str:
    """Draw a tree as an SVG document: a box for each line, coloured by its state."""
    rows = _rows(tree)
    texts = [cut("  ".join(filter(None, branch.parts)), MOST) for branch, _, _ in rows]
    widths = [
        depth * INDENT + width_of(text) * CHAR + 2 * PAD
        for (_, depth, _), text in zip(rows, texts, strict=True)
    ]
    width, height = max(widths) + 2 * PAD, len(rows) * ROW + 2 * PAD
    lines = [
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width:.0f} {height}' "
        f"width='{width:.0f}' height='{height}' {_FONT}>",
        f"<title>{escape(audited(tree.title))}</title>",
        f"<rect width='{width:.0f}' height='{height}' fill='#ffffff'/>",
    ]
    lines += [_rule(at, depth, parent) for at, (_, depth, parent) in enumerate(rows) if depth]
    for at, ((branch, depth, _), text) in enumerate(zip(rows, texts, strict=True)):
        lines += _box(branch, text, depth, at)
    return "\n".join([*lines, "</svg>"]) + "\n"


def _rows(
    branch: Branch, depth: int = 0, parent: int = -1, at: int = 0
) -> list[tuple[Branch, int, int]]:
    """List each line with its depth and the number of its parent's line; its own number is `at`."""
    rows = [(branch, depth, parent)]
    for twig in branch.twigs:
        rows += _rows(twig, depth + 1, at, at + len(rows))
    return rows


def _rule(at: int, depth: int, parent: int) -> str:
    """Draw the line from a parent's box to a box."""
    x = PAD + (depth - 1) * INDENT + INDENT / 2
    top, middle = PAD + parent * ROW + ROW - 3, PAD + at * ROW + ROW / 2
    return (
        f"<path d='M{x:g} {top:g} V{middle:g} H{PAD + depth * INDENT:g}' "
        "fill='none' stroke='#90a4ae'/>"
    )


def _box(branch: Branch, text: str, depth: int, at: int) -> Iterator[str]:
    x, y = PAD + depth * INDENT, PAD + at * ROW + 3
    tone = _TONE_OF.get(branch.state.lower().strip("[]"), _OTHER)
    wide = width_of(text) * CHAR + PAD
    yield (
        f"<rect x='{x:g}' y='{y:g}' width='{wide:.0f}' height='{ROW - 6}' rx='5' "
        f"fill='{tone}' stroke='#b0bec5'/>"
    )
    title = branch.parts[0]
    rest = text[len(title) :]
    yield (
        f"<text x='{x + PAD / 2:g}' y='{y + 16:g}' fill='#263238' xml:space='preserve'>"
        f"<tspan font-weight='bold'>{escape(title)}</tspan>{escape(rest)}</text>"
    )
