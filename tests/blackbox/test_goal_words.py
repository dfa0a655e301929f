"""`/goal` and its verbs in each state of a goal: their effects, refusals and messages."""

import signal

from blackbox.judged import DONE, Start, counting, turns_of, waits_for
from support.driver import WAIT, Chat, Place
from support.model_server import Behaviour, Hang, Recorded, Text
from support.patience import seconds

IMPOSSIBLE = '{"verdict": "impossible", "reason": "there is no such file"}'


def by_its_text(request: Recorded) -> Behaviour:
    """A judge that does what the goal says."""
    goal = request.prompt.partition("## The goal\n")[2]
    if goal.startswith("hang"):
        return Hang()
    if goal.startswith("wait"):
        return Text(waits_for('{"file": "never"}'))
    return Text(IMPOSSIBLE if goal.startswith("find") else DONE)


def refused(chat: Chat, command: str, why: str) -> None:
    """Say it, and be told why not."""
    result = chat.ask(command)
    assert not result["ok"]
    assert why in result["text"]


def reaches(chat: Chat, state: str, **fields: object) -> dict:
    """Look until the goal is in a state, with these fields; return it."""
    wanted = {"state": state, **fields}
    while True:
        data: dict = chat.ask("/goal")["data"]
        if wanted.items() <= data.items():
            return data


def test_each_word_in_each_state(place: Place, start: Start) -> None:
    """A goal that waits, is judged, is paused, is over or in line takes each word as the table says."""
    agent, judge = start(counting, by_its_text)
    chat = place.chat()
    refused(chat, "/goal pause", "there is no goal")

    chat.ask("/goal wait for it")
    reaches(chat, "waiting")
    assert "waiting for the file `never`" in chat.ask("/goal")["text"]
    chat.ask("/goal pause")
    assert reaches(chat, "paused", reason="user")["turns_used"] == 1
    refused(chat, "/goal pause", "it is paused already: a person paused it")
    for total in (2, 3):  # from where it is paused, and from where it waits
        assert chat.ask("/goal resume")["ok"]
        waiting = reaches(chat, "waiting", turns_total=total)
        assert waiting["turns_used"] == 1
    chat.ask("/goal clear")
    assert reaches(chat, "cleared")["turns_total"] == 3

    chat.ask("/goal find what is not there")
    given_up = reaches(chat, "impossible")
    assert given_up["detail"] == "there is no such file"
    refused(chat, "/goal clear", "there is no goal")
    chat.ask("/goal next say so")  # nothing is before it: it begins at once
    reaches(chat, "achieved")

    chat.ask("/goal hang")
    judge.wait_requests(6, WAIT)
    refused(chat, "/goal resume", "it is active")
    assert chat.ask("/goal next say so, too")["data"]["place"] == 1
    assert "being judged" in chat.ask("/goal")["text"]
    chat.ask("/goal pause")
    reaches(chat, "paused", reason="user")
    assert judge.requests[5].closed.wait(seconds(10))
    assert "1 in line" in chat.ask("/goal clear")["text"]
    assert chat.ask("/goal clear")["data"]["next"] == []
    refused(chat, "/goal resume", "there is no goal")

    begun = turns_of(chat)
    chat.ask("/goal hang")
    judge.wait_requests(7, WAIT)
    chat.ask("/goal clear")
    reaches(chat, "cleared")
    assert judge.requests[6].closed.wait(seconds(10))
    chat.ask("/goal hang on")
    judge.wait_requests(8, WAIT)
    replaced = chat.ask("/goal say so")
    assert replaced["data"]["replaced"] == "hang on"
    assert "It replaces: hang on" in replaced["text"]
    reaches(chat, "achieved")
    assert turns_of(chat) == len(agent.requests) == begun + 3

    chat.ask("/goal wait until I am back")
    reaches(chat, "waiting")
    chat.signal(signal.SIGINT)
    again = place.chat("--continue")
    reaches(again, "paused", reason="interrupt")
    again.ask("/goal clear")
    reaches(again, "cleared")


def test_what_was_in_line_at_a_stop_waits_for_a_word(place: Place, start: Start) -> None:
    """A goal that is set after the stop, in the place of the stopped one, does not let it begin."""
    start(counting, by_its_text)
    chat = place.chat()
    chat.ask("/goal wait for it")
    reaches(chat, "waiting")
    assert chat.ask("/goal next say so, second")["data"]["place"] == 1
    chat.ask("/stop")
    reaches(chat, "paused", reason="interrupt")
    chat.ask("/goal say so, first")
    reaches(chat, "achieved")
    begun = turns_of(chat)
    status = chat.ask("/goal status")["data"]
    assert (status["state"], [one["text"] for one in status["next"]]) == (
        "achieved",
        ["say so, second"],
    )
    assert turns_of(chat) == begun
    assert chat.ask("/goal resume")["ok"]
    assert reaches(chat, "achieved")["text"] == "say so, second"
