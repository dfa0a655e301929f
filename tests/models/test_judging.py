"""What a judge is shown, and what becomes of what it says, or doesn't."""

import asyncio

import pytest
from models.conftest import Printing

from steersman.machines import protocol as m
from steersman.machines.conversation import ChatMessage, ToolRequest
from steersman.machines.errors import ModelError
from steersman.ports.judging import LIMIT, JudgeSeat, ask_judge, brief

SAID = (
    ChatMessage(role="user", text="make it so"),
    ChatMessage(
        role="assistant",
        text="I look.",
        tool_calls=(ToolRequest(call="c1", tool="shell", arguments={"command": "make"}),),
    ),
    ChatMessage(role="tool", text="2 errors", call="c1"),
    ChatMessage(role="assistant", text="It is so."),
)
ORDER = m.AskJudge(
    goal="g1",
    turn="t1",
    text="make it so",
    gates=(m.GateResult(command="npm test", passed=True),),
    earlier=("continue: no",),
    said=SAID,
    timeout=0.2,
)


def test_a_judge_is_shown_goal_answer_results_gates_and_its_own_words() -> None:
    """All of it is there, the newest last."""
    text = brief(ORDER)
    places = [
        text.index(part)
        for part in (
            "make it so",
            "`npm test` succeeded",
            "continue: no",
            "called shell command=make",
            "result: 2 errors",
            "It is so.",
        )
    ]
    assert places == sorted(places)


@pytest.mark.parametrize("size", [0, 5_000, 100_000])
def test_what_a_judge_is_shown_has_a_size(size: int) -> None:
    """However much was said, it is cut, and goal and last answer are in it."""
    long = "x" * size
    said = tuple(
        ChatMessage(role=role, text=f"{role} {number} {long}")
        for number in range(30)
        for role in ("user", "tool", "assistant")
    )
    order = m.AskJudge(
        goal="g1", turn="t1", text=f"the goal {long}", said=said, earlier=(long,) * 5
    )
    text = brief(order)
    assert len(text) < LIMIT + 500
    assert "the goal" in text
    assert "assistant 29" in text


def ask(mind: Printing) -> m.JudgeAnswered:
    """Ask it."""
    return asyncio.run(ask_judge(JudgeSeat(model=mind), ORDER))


def test_a_judge_is_cold_has_no_tools_and_a_schema() -> None:
    """Temperature 0, no tools, a schema for servers that can be held to one."""
    mind = Printing("yes")
    assert ask(mind) == m.JudgeAnswered(turn="t1", text="yes")
    (request,) = mind.asked
    assert (request.temperature, request.tools) == (0.0, ())
    assert request.response_schema is not None


def test_a_server_that_knows_no_schema_is_asked_without() -> None:
    """What can't succeed as it is, is asked once more without the schema."""
    mind = Printing(ModelError("no such parameter"), "yes")
    assert ask(mind).text == "yes"
    assert mind.asked[1].response_schema is None


@pytest.mark.parametrize(
    ("answer", "fault"),
    [(None, "0.2 seconds"), (ModelError("it is down", retryable=True), "it is down")],
)
def test_a_judge_that_fails_says_why(answer: Exception | None, fault: str) -> None:
    """Silence and failure are a fault in words, never an exception."""
    assert fault in ask(Printing(answer)).fault
