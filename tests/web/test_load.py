"""Some sessions, some streams and a power cut: nothing acknowledged is lost, nothing told twice."""

from pathlib import Path

import pytest
from support.driver import Place
from support.served import Follower
from web.conftest import Start

SESSIONS, ROUNDS = 4, 3
SCRIPT = """
[[answer]]
text = "{words}"
chunk_delay = 0.005
"""


def script(place: Place, words: int) -> None:
    """Configure a model that says so many words, 200 a second."""
    path = place.home / "script.toml"
    path.write_text(SCRIPT.format(words=" ".join(["word"] * words)), "utf-8")
    lines = [
        "[models.main]",
        'provider = "scripted"',
        f'script = "{path}"',
        "[agents.assistant]",
        'model = "main"',
    ]
    Path(place.home / "config.toml").write_text("\n".join(lines), "utf-8")


@pytest.mark.nightly
def test_a_power_cut_loses_nothing_and_tells_nothing_twice(
    place: Place, served: Start, port: str
) -> None:
    """Every message that was acknowledged is there once; every stream has each numbered event once."""
    script(place, 60)
    web = served("--port", port)
    sessions = [web.begin() for _ in range(SESSIONS)]
    followers = [
        Follower(web.address, web.token, session) for session in sessions for _ in range(2)
    ]
    sent: dict[str, list[str]] = {session: [] for session in sessions}
    token = web.token
    try:
        for life in range(ROUNDS):
            for session in sessions:
                for number in range(3):
                    text = f"message {number} of life {life} for {session}"
                    body = {"text": text, "as": "queue"}
                    key = {"Idempotency-Key": text}
                    said = web.ask("POST", f"sessions/{session}/messages", body, key)
                    assert said.status == 202, said
                    sent[session].append(text)
            first = followers[0]
            assert first.wait(lambda: first.pieces > 20)  # noqa: B023 - asked at once
            web.kill()
            web = served("--port", port)
            web.token = token
        for session in sessions:
            text = sent[session][-1]
            body, key = {"text": text, "as": "queue"}, {"Idempotency-Key": text}
            again = web.ask("POST", f"sessions/{session}/messages", body, key)
            assert again.data.get("receipt", again.data)["id"], again
            web.ask("POST", f"sessions/{session}/queue/resume")
        for session in sessions:
            events = web.until(
                session, "turn_ended", web.ask("GET", f"sessions/{session}").data["seq"]
            )
            assert events
            queue = web.ask("GET", f"sessions/{session}/queue").data["items"]
            for item in queue:
                web.ask("DELETE", f"sessions/{session}/queue/{item['number']}")
            web.ask("POST", f"sessions/{session}/stop")
        web.ask("GET", "sessions")
        for follower in followers:
            journal = web.page(follower.session)
            texts = [event["text"] for event in journal if event["type"] == "accepted"]
            assert texts == sent[follower.session]
            newest = journal[-1]["seq"]
            assert follower.wait(lambda: follower.numbered[-1]["seq"] >= newest)  # noqa: B023
            told = [(event["seq"], event["type"]) for event in follower.numbered]
            upto = [row for row in told if row[0] <= newest]
            assert upto == [(event["seq"], event["type"]) for event in journal]
    finally:
        for follower in followers:
            follower.stop()


@pytest.mark.nightly
def test_more_sessions_are_open_than_files_by_default(place: Place, served: Start) -> None:
    """The server takes what the system lets it have: each open session holds a lock."""
    script(place, 1)
    place.command = ("sh", "-c", 'ulimit -Sn 80; exec "$@"', "sh", *place.command)
    web = served()
    for _ in range(90):
        session = web.begin()
    assert web.ask("GET", f"sessions/{session}").data["open"] == "here"
