"""How full a window is, where a conversation can be cut, and what of it can be left out."""

import pytest

from steersman.machines.context import Fill, cut_points, ends_of, filled, older, pruned, tokens_of
from steersman.machines.conversation import ChatMessage, ToolRequest

USER, SAID = ChatMessage(role="user", text="x" * 400), ChatMessage(role="assistant", text="y" * 400)
CALLS = ChatMessage(
    role="assistant",
    text="",
    tool_calls=(ToolRequest(call="c1", tool="read"), ToolRequest(call="c2", tool="read")),
)
RESULT = ChatMessage(role="tool", text="z" * 4000, call="c1")


def test_what_a_server_counted_is_believed_and_the_rest_estimated() -> None:
    """Four characters a token, a little for each message, and instructions where nothing is known."""
    assert tokens_of([USER, SAID]) == 208
    assert filled(Fill(), [USER], overhead=50) == 154
    assert filled(Fill(tokens=1000, messages=2), [USER, SAID, USER], overhead=50) == 1104
    assert filled(Fill(tokens=1000, messages=9), [USER], overhead=50) == 154, (
        "what was counted is no longer there"
    )


@pytest.mark.parametrize(
    ("is_amid", "points"),
    [(False, [2, 6]), (True, [1, 2, 3, 5, 6])],
)
def test_a_cut_leaves_whole_exchanges(is_amid: bool, points: list[int]) -> None:
    """A result never loses its call: what is kept begins with a person, or with the agent's step."""
    talk = [USER, SAID, USER, CALLS, RESULT, SAID, USER]
    found = cut_points(talk, is_amid)
    assert found == [point for point in points if talk[point].role != "tool"]
    assert not any(talk[one].role == "tool" for one in found)


@pytest.mark.parametrize(("keep", "dropped"), [(10_000, 2), (320, 4), (120, 6), (0, 6)])
def test_the_newest_turns_that_fit_are_kept(keep: int, dropped: int) -> None:
    """The newest is kept even if it alone is too long."""
    talk = [USER, SAID, USER, SAID, USER, SAID, USER]
    assert older(talk, keep) == dropped
    assert older([USER], keep) == 0


def test_the_oldest_results_go_first_and_the_newest_are_shortened_last() -> None:
    """Words of people and of the agent stay; head and tail of the newest results do, too."""
    talk = [USER, CALLS, RESULT, RESULT, SAID, CALLS, RESULT, RESULT, SAID]
    changed, count = pruned(talk, 1500)
    assert (len(changed), count) == (4, 2)
    assert all("4000 characters" in one.text for one in changed[2:4])
    assert [message.role for message in changed] == ["user", "assistant", "tool", "tool"]
    changed, count = pruned(talk, 2200)
    assert (len(changed), count) == (7, 3)
    assert changed[6].text.startswith("z" * 1000)
    assert changed[6].text.endswith("z" * 1000)
    changed, count = pruned(talk, 100_000)
    assert count == 4
    assert all(len(one.text) < 2100 for one in changed)
    assert pruned([USER, SAID], 1000) == ([], 0)


def test_the_ends_of_a_text_are_whole_lines_with_the_place_of_the_rest():
    """A text of the limit's length stays; a longer one names the first line that is missing."""
    text = "".join(f"line {number}\n" for number in range(100))
    assert ends_of(text, len(text)) == text
    place = "; whole output in a.txt: `read` it with `offset` 7, or `search` it"
    assert ends_of(text, 90, "a.txt") == (
        "".join(f"line {number}\n" for number in range(6))
        + f"[… 708 characters left out{place}]\n"
        + "".join(f"line {number}\n" for number in range(95, 100))
    )
    assert ends_of("x" * 100, 10) == "xxxxx\n[… 90 characters left out]\nxxxxx"


def test_a_result_that_is_left_out_still_names_its_file():
    """What was cut before keeps the place of the whole."""
    cut = ends_of("word\n" * 2000, 2000, "/o/t1.txt")
    said = [ChatMessage(role="tool", text=text, call="c") for text in (cut, "x" * 500)]
    changed, count = pruned(said, 600, spare=0)
    assert count == 2
    assert changed[0].text == (
        f"[left out to make room: {len(cut)} characters of this result; whole output in /o/t1.txt]"
    )
    assert changed[1].text == "[left out to make room: 500 characters of this result]"
