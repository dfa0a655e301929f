"""What the screen is made of: Markdown as it streams, tool calls as rows, the bar, pastes, the past."""

import re
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prompt_toolkit.layout.screen import Char, Screen
from prompt_toolkit.utils import get_cwidth

from steersman.cli.prompt import InputHistory
from steersman.cli.question import answer_keys
from steersman.cli.screen.appearance import Appearance, Row, link_style
from steersman.cli.screen.bindings import keys_text
from steersman.cli.screen.input_line import Pastes, waiting_beside
from steersman.cli.screen.layout import breaks_rows, rows_added
from steersman.cli.screen.markdown import Markdown, Stream
from steersman.cli.screen.markdown_blocks import LOADER, Highlighter
from steersman.cli.screen.screen import card_rows, replacing
from steersman.cli.screen.status import (
    ShownQueue,
    Status,
    bar,
    duration,
    key_hints,
    waiting_rows,
)
from steersman.cli.screen.transcript import ended_rows, unfolded_rows
from steersman.cli.wrapping import fitted, wrapped_pieces

LOOK = Appearance()
ANSWER = """# Ownership

Every value has **one owner**, and `its scope` says *when* it ends; this goes on for more than a row.
- a point that is long enough to go on in a second row, where it hangs below its first word
12. another
> a quote

```rust
fn main() { let text = String::from("a line of code that is far wider than the narrowest screen"); }
```
| a | table |

| name | what |
|:--|--:|
| one | cell |
see [the page](https://example.org/a_b) or https://example.org/*x* for more
Use *args, **kwargs and __init__ as they are; 2 * 3 * 4.
"""


def text_of(rows: list[Row]) -> list[str]:
    """Return rows as they read."""
    return ["".join(text for _, text in row) for row in rows]


def letters(text: str) -> str:
    """Return what a reader would miss if it were not there."""
    return re.sub(r"[^\w]", "", text)


@pytest.mark.parametrize(
    ("line", "pieces"),
    [
        ("plain", [("", "plain")]),
        ("## A *small* head", [("bold", "A "), ("bold italic", "small"), ("bold", " head")]),
        ("- a `b` c", [("", "• "), ("", "a "), ("ansicyan", "b"), ("", " c")]),
        ("a **b `c`** d", [("", "a "), ("bold", "b "), ("bold ansicyan", "c"), ("", " d")]),
        ("f(*args, **kwargs)", [("", "f(*args, **kwargs)")]),
        ("2 * 3 * 4", [("", "2 * 3 * 4")]),
        ("**never closed", [("", "**never closed")]),
        ("``a ` b``", [("ansicyan", "a ` b")]),
        ("> said", [("dim", "│ "), ("italic", "said")]),
    ],
)
def test_a_line_of_markdown(line: str, pieces: list[tuple[str, str]]) -> None:
    """Marks that make a pair become a style; all others stay as the model wrote them."""
    assert Markdown(LOOK).take(line).pieces() == pieces


@pytest.mark.parametrize(
    ("line", "pieces"),
    [
        (
            'see [the *page*](https://a.b/c_d?e=1 "title").',
            [
                ("", "see "),
                ("underline href:https://a.b/c_d?e=1", "the *page*"),
                ("", " "),
                ("dim underline href:https://a.b/c_d?e=1", '(https://a.b/c_d?e=1 "title")'),
                ("", "."),
            ],
        ),
        ("[https://a.b](https://a.b)", [("underline href:https://a.b", "https://a.b")]),
        ("<https://a.b>", [("underline href:https://a.b", "https://a.b")]),
        ("at https://a.b/*c*.", [("", "at "), ("underline href:https://a.b/", "https://a.b/")]),
        ("[x](javascript:y)", [("underline", "x"), ("", " "), ("dim underline", "(javascript:y)")]),
        ("[x](file:///y)", [("underline", "x"), ("", " "), ("dim underline", "(file:///y)")]),
        ("[no] (link) a[0](b c)", [("", "[no] (link) a[0](b c)")]),
        ("`[x](https://a.b)`", [("ansicyan", "[x](https://a.b)")]),
    ],
)
def test_a_link(line: str, pieces: list[tuple[str, str]]) -> None:
    """Its address is there to be read, unless it is the text; only one of the web can be opened."""
    assert Markdown(LOOK).take(line).pieces()[: len(pieces)] == pieces


def test_a_link_is_no_command_to_the_terminal() -> None:
    """An address with more than printable ASCII is text; without a terminal that links, each is."""
    look = Appearance(has_links=True)
    opened = "\x1b]8;;https://a.b\x1b\\\x1b[4mx\x1b[0m\x1b]8;;\x1b\\"
    assert look.printed([(link_style("https://a.b"), "x")]) == opened
    assert LOOK.printed([(link_style("https://a.b"), "x")]) == "\x1b[4mx\x1b[0m"
    for address in (
        "https://a\x1b\\\x07",
        "https://a\x9c",
        "https://ä.b",
        "https://a b",
        "ssh://a",
    ):
        assert link_style(address) == "underline"
    assert Appearance.of({"VTE_VERSION": "7000"}).has_links
    assert not Appearance.of({"VTE_VERSION": "7000", "TMUX": "/tmp/x"}).has_links


def streamed(text: str, width: int, look: Appearance = LOOK) -> list[str]:
    """Return what a text reads like that comes letter by letter, without blanks at the ends."""
    stream = Stream(look)
    rows = [row for letter in text for row in stream.feed(letter, width)]
    return [row.rstrip() for row in text_of([*rows, *stream.finish(width)])]


TABLE = """\
a | b | c
--|:-:|--:
one two \\| three | x | 1
**four** | five and six

after
"""


def test_a_table_is_drawn_when_it_is_whole() -> None:
    """Columns are as wide as their cells, aligned, and a row that lacks cells has empty ones."""
    assert streamed(TABLE, 80) == [
        "a               │      b       │ c",
        "────────────────┼──────────────┼──",
        "one two | three │      x       │ 1",
        "four            │ five and six │",
        "",
        "after",
    ]
    stream = Stream(LOOK)
    assert stream.feed("| a | b |\n|--|--|\n| c | d |\n", 80) == []
    assert stream.is_unfinished
    assert text_of(stream.live(80)) == ["a │ b", "──┼──", "c │ d"]


def test_a_table_fits_the_terminal() -> None:
    """Wide cells are broken; where the columns would be too narrow, each row is a list."""
    table = "| name | what |\n|---|---|\n| zod | a library that checks data |\n| yup | older |\n"
    assert streamed(table, 24) == [
        "name │ what",
        "─────┼──────────────────",
        "zod  │ a library that",
        "     │ checks data",
        "─────┼──────────────────",
        "yup  │ older",
    ]
    assert streamed(table, 10, Appearance(can_utf8=False)) == [
        *("name: zod", "what: a", "  library", "  that", "  checks", "  data", ""),
        *("name: yup", "what:", "  older"),
    ]


@pytest.mark.parametrize("text", ["a | b\nc | d\n", "| a | b |\n|--|\n", "| a |\n\n| b |\n"])
def test_lines_with_pipes_are_no_table(text: str) -> None:
    """Without a second row that says so, they are lines as they are."""
    assert streamed(text, 80) == text.splitlines()


def test_a_table_that_does_not_end_is_drawn_in_parts() -> None:
    """The memory that it takes has a bound, and no row is lost."""
    rows = "".join(f"| n{n} | x |\n" for n in range(500))
    drawn = streamed(f"| a | b |\n|---|---|\n{rows}", 80)
    assert [row.split()[0] for row in drawn if row.startswith("n")] == [f"n{n}" for n in range(500)]


def test_code_is_coloured() -> None:
    """By its language, over several lines; what is too long or not known has one colour."""
    LOADER.wait("python")
    first, second = Highlighter("Python").take(["x = '''a", "def b''' + f(1)  # c"])
    assert first[-1] == ("ansigreen", "a")
    assert second[0] == ("ansigreen", "def b")
    assert second[-1] == ("dim italic", "# c")
    long = f"x = '{'y' * 600}'"
    assert Highlighter("python").take([long]) == [[("ansicyan", long)]]
    assert Highlighter("no-such").take(["x", ""]) == [[("ansicyan", "x")], []]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=30), max_size=20))
@settings(max_examples=50, deadline=None)
def test_colours_change_no_letter(lines: list[str]) -> None:
    """Whatever a block holds, its lines read as they were."""
    texts = [line.replace("\n", "") for line in lines]
    for language in ("python", "html", "sh"):
        LOADER.wait(language)
        shown = Highlighter(language).take(texts)
        assert ["".join(text for _, text in line) for line in shown] == texts


def test_code_is_left_alone() -> None:
    """Between fences nothing is a mark, whatever it looks like, until the fence that fits."""
    markdown = Markdown(LOOK)
    lines = ["````", "# no **head**", "```", "- no list", "````", "**bold**"]
    styles = [{style for style, _ in markdown.take(line).pieces()} for line in lines]
    assert styles == [{"dim"}, {"ansicyan"}, {"ansicyan"}, {"ansicyan"}, {"dim"}, {"bold"}]


@given(st.lists(st.integers(1, 30), min_size=1, max_size=200), st.sampled_from([12, 40, 80, 200]))
@settings(max_examples=60, deadline=None)
def test_a_stream_is_whole(sizes: list[int], width: int) -> None:
    """However it is cut into pieces, each word is given out once, in order, in rows that fit."""
    text = ANSWER + "and a paragraph that does not end, " * 30 + "**bold " * 3 + "** x" * 40
    stream, rows, at = Stream(LOOK), list[Row](), 0
    while at < len(text):
        size = sizes[at % len(sizes)]
        rows += stream.feed(text[at : at + size], width)
        assert all(get_cwidth(row) <= width for row in text_of(stream.live(width)))
        at += size
    rows += stream.finish(width)
    assert letters("".join(text_of(rows))) == letters(text)
    assert all(get_cwidth(row) <= width for row in text_of(rows))
    assert stream.live(width) == []


def test_wide_signs_and_hangs() -> None:
    """Rows are measured in columns, and a hang begins each row but the first."""
    rows = wrapped_pieces([("", "- "), ("bold", "全角文字 and more")], 9, "  ")
    assert text_of(rows) == ["- 全角文", "  字 and", "  more"]
    assert fitted("全角文字", 5) == "全角…"


def called(tool: str, **arguments: Any) -> dict[str, Any]:
    """A call as its event tells it."""
    return {"kind": "permission", "tool": tool, "call": "t1.s1.c1", "arguments": arguments}


def ended(tool: str, output: str, status: str = "ok", exit_code: int | None = 0) -> dict[str, Any]:
    """The end of a call as its event tells it."""
    known = {"tool": tool, "call": "t1.s1.c1", "status": status, "exit_code": exit_code}
    return {**known, "bytes": len(output), "lines": output.count("\n") + 1, "output": output}


@pytest.mark.parametrize(
    ("call", "end", "row"),
    [
        (
            called("shell", command="npm test"),
            ended("shell", "one\n12 passed\n[exit code 0]"),
            "✓ shell npm test → 12 passed · 2.1 s · 2 lines",
        ),
        (
            called("shell", command="npm test"),
            ended("shell", "oops\n[exit code 3]", "failed", 3),
            "✗ shell npm test → exit 3: oops · 2.1 s · 18 B",
        ),
        (called("list", path="."), ended("list", "a\nb\nc"), "✓ list . · 2.1 s · 3 lines"),
    ],
)
def test_a_call_is_one_row(call: dict[str, Any], end: dict[str, Any], row: str) -> None:
    """It says what, how it ended, how long it took and how much it said."""
    assert text_of(ended_rows(call, end, 2.1, 100, LOOK))[0] == row
    narrow = text_of(ended_rows(call, end, 2.1, 40, LOOK))
    assert get_cwidth(narrow[0]) <= 40
    assert narrow[0].startswith(row[:7])


def test_a_diff_is_cut_and_unfolds() -> None:
    """An edit shows what it changed, a few rows of it; unfolded, all of it."""
    new = "\n".join(f"line {n}" for n in range(40))
    call, end = called("edit", path="a.py", old="x", new=new), ended("edit", "changed")
    rows = ended_rows(call, end, 0.1, 80, LOOK)
    assert rows[1] == [("ansired", "  -x")]
    assert rows[2] == [("ansigreen", "  +line 0")]
    assert text_of(rows)[-1] == "  … 29 more lines"
    assert "  +line 39" in text_of(unfolded_rows(call, end["output"], 0, 80, LOOK))


def test_a_write_that_changes_nothing_shows_no_change() -> None:
    """The screen says what the model reads."""
    call = called("write", path="a.py", content="x = 1\n")
    end = ended("write", "Unchanged: `a.py` has just this content.")
    assert text_of(ended_rows(call, end, 0.1, 80, LOOK)) == ["✓ write a.py → unchanged · 0.1 s"]


def test_what_a_tool_says_is_no_command_to_the_terminal() -> None:
    """No escape sequence of a tool, a path or a question gets into a row."""
    evil = "\x1b]0;owned\x07\x1b[31mred\r\x08"
    call, end = called("shell", command=evil), ended("shell", f"{evil}\n{evil}")
    rows = ended_rows(call, end, 1.0, 80, LOOK) + unfolded_rows(call, end["output"], 0, 80, LOOK)
    question = {**call, "id": "q-t1.s1.c1", "options": ["allow", "always", "deny"]}
    rows += card_rows(question, 2, "kid", 80, LOOK)
    assert not [text for text in text_of(rows) if re.search(r"[\x00-\x1f\x7f]", text)]


def test_a_card_is_no_taller_than_it_may_be() -> None:
    """A question about a file of a thousand lines shows some of them, and the keys."""
    question = called("write", path="a", content="x\n" * 1000)
    rows = text_of(card_rows({**question, "id": "q"}, 1, "", 60, LOOK))
    assert len(rows) < 15
    assert rows[-1].startswith("▌ ")
    assert all(row.startswith("▌ ") for row in rows)


def test_a_card_in_a_small_window_shows_the_call_before_its_keys() -> None:
    """With less room the keys are shorter, then less of the call is shown; never keys without a call."""
    question = {**called("shell", command="cat one; curl two; rm -rf three"), "id": "q"}
    question |= {"kind": "permission", "outside": False, "options": ["allow", "always", "deny"]}
    keys = answer_keys(question, Path("/"))
    whole = text_of(card_rows(question, 1, "", 40, LOOK, keys=keys))
    for most in range(len(whole), 0, -1):
        rows = text_of(card_rows(question, 1, "", 40, LOOK, keys=keys, most=most))
        assert len(rows) <= most
        if rows:
            assert rows[0] == "▌ May `shell` run?"
            assert rows[1].startswith("▌   cat one; curl")
            assert "n no" in rows[-1]
            assert "rm -rf three" in "".join(rows) or "…" in "".join(rows)
    assert text_of(card_rows(question, 1, "", 40, LOOK, keys=keys, most=2)) == []


def test_a_card_shows_what_a_write_replaces(tmp_path: Path) -> None:
    """A file that is there: what goes and what comes; one that is not, outside or not: what comes."""
    (tmp_path / "a").write_text("one\ntwo\nthree\nfour\nfive\n")
    content = "one\ntwo\nthree\n4\nfive\n"
    old = {**called("write", path="a", content=content), "id": "q"}
    rows = text_of(card_rows(old, 1, "", 60, LOOK, replacing(old, tmp_path)))
    shown = ["a", "@@ line 2 @@", " two", " three", "-four", "+4", " five"]
    assert rows[1:-1] == [f"▌   {line}" for line in shown]
    new = {**called("write", path="../b/c", content="1\n2\n"), "id": "q"}
    rows = text_of(card_rows(new, 1, "", 60, LOOK, replacing(new, tmp_path)))
    assert rows[1:-1] == ["▌   ../b/c", "▌   +1", "▌   +2"]


def busy_status() -> Status:
    """A session in which everything goes on at once."""
    status = Status(agent="assistant", model="a-model-with-a-long-name")
    waits = {"state": "pending", "text": "x", "user": ""}
    items = [{"id": str(n), "number": n, **waits, "held": n < 3} for n in range(4)]
    for event in (
        {"type": "turn_started"},
        {"type": "progress", "done": 12, "total": 50, "unit": "file"},
        {"type": "queue", "state": "held", "items": [*items, {"state": "interrupted"}]},
        {"type": "child_started", "name": "kid", "id": "s1"},
        {"type": "window", "tokens": 94_000, "size": 200_000},
        {"type": "goal", "state": "active", "turns_used": 3, "max_turns": 20},
    ):
        status.hear(event, 0.0)
    return status


def test_the_bar_tells_everything_where_there_is_room() -> None:
    """At 200 columns nothing is left out."""
    assert bar(busy_status(), 12.0, 200, LOOK) == (
        "assistant · a-model-with-a-long-name · working 12 s (file 12/50) · 1 waiting · 3 held"
        " · 1 interrupted · kid at work · goal 3/20 · 47 % of 200k"
    )


@pytest.mark.parametrize(
    ("users", "said"),
    [
        (("", "", ""), "working 3 s · 2 waiting"),
        (("ann", "", ""), "working for ann 3 s · 2 waiting"),
        (("", "ann", ""), "working 3 s · 2 waiting (1 from ann)"),
        (("bob", "ann", "ann"), "working for bob 3 s · 2 waiting (from ann)"),
        (("", *"abc"), "working 3 s · 3 waiting (from a, b and others)"),
        (("", "x" * 40), f"working 3 s · 1 waiting (from {'x' * 15}…)"),
    ],
)
def test_the_bar_names_the_senders_who_are_not_the_owner(users: tuple[str, ...], said: str) -> None:
    """Of the running message and of those that wait; held ones are named in the same way."""
    status = Status()
    items = [
        {"number": at, "state": "pending" if at else "running", "text": "x", "user": user}
        for at, user in enumerate(users)
    ]
    status.hear({"type": "turn_started"}, 0.0)  # type: ignore[typeddict-item]
    status.hear({"type": "queue", "state": "open", "items": items}, 0.0)  # type: ignore[typeddict-item]
    assert bar(status, 3.0, 200, LOOK) == said
    held = [{**item, "held": True} for item in items[1:]]
    status.hear({"type": "queue", "state": "held", "items": [items[0], *held]}, 0.0)  # type: ignore[typeddict-item]
    assert bar(status, 3.0, 200, LOOK) == said.replace("waiting", "held")


def test_what_waits_stands_above_the_line() -> None:
    """The next messages, each on one row, and how many there are besides."""
    status = Status(is_busy=True)
    items: list[Any] = [
        {"number": at, "state": "pending", "text": text, "user": user}
        for at, (text, user) in enumerate((("tests,\nthen docs", ""), ("x" * 99, "ann")), 2)
    ]
    running: Any = {"number": 1, "state": "running", "text": "go", "user": ""}
    status.queue.items = [running, *items]
    assert text_of(waiting_rows(status, 40, LOOK)) == [
        "#2 waits: tests, then docs",
        f"#3 waits, from ann: {'x' * 19}…",
    ]
    items[0] |= {"children": ["ann", "bob"]}
    assert text_of(waiting_rows(status, 40, LOOK))[0] == "#2 steers ann, bob: tests, then docs"
    items[0] |= {"turn": "t1"}
    items[1] |= {"held": True}
    status.queue.items = [*items, *items]
    assert text_of(waiting_rows(status, 29, LOOK)) == [
        "#2 steers: tests, then docs",
        "#3 is held, from ann: xxxxxx…",
        "2 more: /queue",
    ]


def test_the_bar_says_how_a_stopped_turn_is_resumed() -> None:
    """What is held or interrupted stands beside the command that runs it, also at 40 columns."""
    status = Status(agent="assistant", model="main")
    stopped: Any = [{"number": 1, "state": "interrupted", "text": "x", "user": ""}]
    queue: Any = {"type": "queue", "state": "open", "items": stopped}
    status.hear(queue, 0.0)
    hints = key_hints(status, 0, is_empty=True)
    wide, narrow = (bar(status, 3.0, width, LOOK, hints=hints) for width in (79, 39))
    keys = re.escape("/queue resume · ? keys · / commands")
    assert re.fullmatch(f"assistant · main · idle · 1 interrupted  +{keys}", wide)
    assert re.fullmatch("idle · 1 interrupted  +/queue resume", narrow)


def test_a_steer_of_a_stopped_turn_is_held() -> None:
    """It waits during the turn; after a stop, it runs only when a person resumes that turn."""
    status = Status()
    item = {"id": "m2", "number": 2, "state": "pending", "text": "x", "user": "", "turn": "t1"}
    events: Any = (
        {"type": "turn_started"},
        {"type": "queue", "state": "open", "items": [item]},
    )
    for event in events:
        status.hear(event, 0.0)
    assert bar(status, 3.0, 80, LOOK) == "working 3 s · 1 waiting"
    after: Any = (
        {"type": "turn_ended"},
        {"type": "queue", "state": "held", "items": [{**item, "held": True}]},
    )
    for event in after:
        status.hear(event, 4.0)
    assert bar(status, 5.0, 80, LOOK) == "idle · 1 held"


@pytest.mark.parametrize("width", [1, 5, 20, 40, 60, 80, 120])
def test_the_bar_is_never_wider_than_the_terminal(width: int) -> None:
    """What matters least goes first: at 40 columns the turn, its progress and the queue are there."""
    text = bar(busy_status(), 12.0, width, LOOK, asks=1)
    assert get_cwidth(text) <= width
    if width >= 40:
        assert text.startswith("working 12 s (file 12/50)") or "(file 12/50)" in text
        assert "1 question" in text


def test_lines_that_were_left_out_are_not_counted() -> None:
    """Where the tool left out the middle, the size of the whole output is shown."""
    gap = "[… 9000 bytes left out; whole output in `x`]"
    end: Any = ended("shell", f"1\n{gap}\n3000\n[exit code 0]") | {"bytes": 13_893}
    call: Any = called("shell", command="seq 3000")
    (row,) = text_of(ended_rows(call, end, 0.2, 80, LOOK))
    assert row == "✓ shell seq 3000 → 3000 · 0.2 s · 14 kB"


def test_a_narrow_row_says_why_a_call_failed() -> None:
    """Duration and size give way to the exit code; a limit of time is no part of the command."""
    arguments = {"command": "npm test -- --watch=false --run src/deep", "timeout": 600}
    call: Any = {"call": "t1.s1.c1", "tool": "shell", "arguments": arguments}
    end: Any = {"call": "t1.s1.c1", "tool": "shell", "status": "failed", "exit_code": 127}
    end |= {"output": "sh: npm: not found\n", "bytes": 471, "lines": 1}
    (row,) = text_of(ended_rows(call, end, 1.2, 39, LOOK))
    assert row == "✗ shell npm test -- -… → exit 127: sh:…"
    wide = text_of(ended_rows(call, end, 1.2, 200, LOOK))[0]
    assert "src/deep → exit 127" in wide
    assert "600" not in wide


@pytest.mark.parametrize(
    ("is_busy", "is_empty", "asks", "wide", "narrow"),
    [
        (False, True, 0, "? keys · / commands", "? keys"),
        (False, False, 0, "", ""),
        (True, True, 0, "Esc stops", "Esc stops"),
        (True, False, 0, "Tab queues it · Alt-Enter steers", "Tab queues it"),
        (True, True, 1, "Esc stops", "Esc stops"),
        (False, True, 1, "", ""),
    ],
)
def test_the_bar_ends_with_what_the_keys_do_now(
    is_busy: bool, is_empty: bool, asks: int, wide: str, narrow: str
) -> None:
    """As many keys as fit stand at the right edge, and what the session does stays."""
    status = Status(agent="assistant", model="main")
    if is_busy:
        status.hear({"type": "turn_started"}, 0.0)  # type: ignore[typeddict-item]
    hints = key_hints(status, asks, is_empty=is_empty)
    for width, keys in ((79, wide), (39, narrow)):
        does = "working 3 s" if is_busy else "idle"
        shown = bar(status, 3.0, width, LOOK, asks, hints)
        assert does in shown
        if keys:
            assert (shown.endswith(f"  {keys}"), get_cwidth(shown)) == (True, width)
        else:
            assert shown == bar(status, 3.0, width, LOOK, asks)


def test_the_status_comes_before_the_keys() -> None:
    """Names and the window's fill make room for a key; a queue and a goal do not."""
    text = bar(busy_status(), 12.0, 100, LOOK, hints=["Esc stops"])
    assert text.startswith("working 12 s (file 12/50) · 1 waiting · 3 held")
    assert re.search(r"goal 3/20 +Esc stops$", text)
    assert bar(busy_status(), 12.0, 90, LOOK, hints=["Esc stops"]).endswith("goal 3/20")


def test_a_card_names_what_is_not_the_command_itself() -> None:
    """A number is shown with the name of its argument, below the command."""
    arguments = {"timeout": 600, "command": "npm test"}
    question = {
        "id": "q-1",
        "session": "s1",
        "kind": "permission",
        "tool": "shell",
        "arguments": arguments,
    }
    rows = card_rows(question, 1, "", 60, LOOK)  # type: ignore[arg-type]
    assert text_of(rows)[1:3] == ["▌   npm test", "▌   timeout: 600"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.004, "4 ms"), (0.44, "0.4 s"), (12.4, "12 s"), (59.7, "1 min 0 s"), (7500, "2 h 5 min")],
)
def test_durations(seconds: float, text: str) -> None:
    """A time reads as people say it."""
    assert duration(seconds) == text


def test_the_help_of_keys_fits_any_terminal() -> None:
    """What a line can begin with is one row where there is room, and a row each where there is not."""
    assert keys_text(LOOK, 79).endswith(
        "\n/ commands   ! your own shell   @ files, subagents   # the queue"
    )
    narrow = keys_text(LOOK, 39).split("\n")
    assert narrow[-4:] == ["/ commands", "! your own shell", "@ files, subagents", "# the queue"]


def test_a_long_paste_is_one_word_and_is_sent_whole() -> None:
    """Its word can be written around, rubbed out as one, and stands for it wherever it is."""
    pastes = Pastes()
    long = "\r\n".join(f"line {n}" for n in range(5_000))
    word = pastes.take(long)
    assert word == "[Pasted #1: 5,000 lines]"
    assert pastes.whole(f"see {word}, please") == f"see {long.replace(chr(13), '')}, please"
    assert pastes.word_before(f"see {word}") == len(word)
    assert pastes.word_before("[Pasted #7: 9 lines]") == 0
    assert pastes.take("two\rlines") == "two\nlines"
    assert pastes.take("line\n" * 200) == "[Pasted #2: 200 lines]"
    assert pastes.take("line\n" * 8) == "line\n" * 8


@pytest.mark.parametrize(
    ("widths", "cursor", "columns", "added"),
    [((30, 90, 0), (2, 5), 40, 2), ((40, 41), (1, 45), 40, 1), ((), (0, 5), 40, 0)],
)
def test_rows_that_a_narrower_window_adds(
    widths: tuple[int, ...], cursor: tuple[int, int], columns: int, added: int
) -> None:
    """Each row above the cursor that is too wide is several, and so is the cursor's own."""
    drawn = Screen()
    for at, width in enumerate(widths):
        for x in range(width):
            drawn.data_buffer[at][x] = Char("x")
    assert rows_added(drawn, *cursor, columns) == added
    assert breaks_rows({"TERM": "xterm-256color", "TMUX": "/tmp/x"})
    assert breaks_rows({"TERM": "screen-256color"})  # how tmux calls itself without its variable
    assert not breaks_rows({"TERM": "screen-256color", "STY": "1.pts"})
    assert not breaks_rows({"TERM": "xterm-256color"})


def test_the_past_is_private_and_holds_no_secret(tmp_path: Path) -> None:
    """It is there for the next program, newest first, without keys, pastes and what began blank."""
    path = tmp_path / "state" / "history.jsonl"
    past = InputHistory(path, {"MY_API_KEY": "hunter2hunter2"})
    for text in ("one\ntwo", "use hunter2hunter2", " hidden", "see [Pasted #1: 9 lines]"):
        past.append_string(text)
    assert list(InputHistory(path, {}).load_history_strings()) == ["use …", "one\ntwo"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_text('"good"\nbroken\n{"a": 1}\n', "utf-8")
    assert list(InputHistory(path, {}).load_history_strings()) == ["good"]


def test_what_is_left_out_of_an_output_is_counted() -> None:
    """Lines that are known are counted; where a tool had left out more, the bytes are."""
    whole = [str(number) for number in range(1, 1001)]
    call: Any = {"call": "t1.s1.c1", "tool": "shell", "arguments": {}}
    gap = "[… 44000 bytes left out; whole output in `x`: `read` it with `offset`]"
    for lines, told in (
        (whole, "… 600 lines left out …"),
        ([*whole[:500], gap, *whole[500:]], "… 46 kB left out …"),
    ):
        rows = text_of(unfolded_rows(call, "\n".join(lines), 47_893, 80, LOOK))
        assert rows[1:202] == [*whole[:200], told]
        assert rows[202:] == whole[-200:]


def test_up_passes_over_what_a_subagent_has() -> None:
    """And over a goal's turn: neither can be edited; what another terminal edits is not passed over."""
    items: list[Any] = [
        {"id": "i1", "number": 1, "state": "running", "text": "work"},
        {"id": "i2", "number": 2, "state": "pending", "text": "two", "edited": True},
        {"id": "i3", "number": 3, "state": "pending", "text": "three"},
        {"id": "i4", "number": 4, "state": "pending", "text": "four", "children": ["kid"]},
        {"id": "i5", "number": 5, "state": "pending", "text": "five", "goal": "g1"},
    ]
    status = Status(queue=ShownQueue(items=items))
    newest = waiting_beside(status, None)
    assert newest is not None
    assert (newest.text, newest.after) == ("three", 1)
    before = waiting_beside(status, newest)
    assert before is not None
    assert before.text == "two"
    assert waiting_beside(status, before) is None
    assert waiting_beside(status, before, is_later=True) == newest
    assert waiting_beside(status, newest, is_later=True) is None
