"""The shipped workflows that need a model and change nothing: each is run whole, with its judge."""

import subprocess
from typing import Any

import pytest
from support.driver import Place
from support.model_server import Text

VERDICT = '{{"verdict": "{}", "reason": "{}"}}'


def run(place: Place, *arguments: str) -> tuple[dict[str, str], dict[str, Any]]:
    """Run a shipped workflow; return the state of each step, and the end of the run."""
    chat = place.job(*arguments)
    ended = chat.wait("run_ended", session=chat.session)
    assert chat.close() == 0
    return {step["step"]: step["state"] for step in ended["steps"]}, ended


def test_a_review_ends_with_a_verdict(place: Place, serve: Any) -> None:
    """Each changed file is reviewed, then all together, then a judge decides."""
    for command in ("init -q", "add .", "-c user.name=a -c user.email=a@b commit -qm x"):
        (place.folder / "a.py").write_text("x = 1\n")
        subprocess.run(["git", *command.split()], cwd=place.folder, check=True)
    (place.folder / "a.py").write_text("x = 2\n")
    (place.folder / "new.py").write_text("y = 1\n")
    server = serve(
        Text(VERDICT.format("continue", "x is wrong"), match="Nothing has to be fixed"),
        Text("a.py:1 is wrong", match="These are reviews"),
        Text("x should be 1", match="Review this change of `a.py`"),
        Text("no defects", match="Review this change of `new.py`"),
    )
    states, ended = run(place, "review")
    assert (ended["status"], set(states.values())) == ("succeeded", {"done"})
    assert ended["output"].split("\n") == [
        "a.py:1 is wrong",
        "",
        "It should not be merged yet: x is wrong",
    ]
    asked = [request.prompt for request in server.requests]
    assert any("-x = 1\n+x = 2" in text for text in asked)
    assert any("+y = 1" in text for text in asked)
    for command in ("add -A", "-c user.name=a -c user.email=a@b commit -qm y"):
        subprocess.run(["git", *command.split()], cwd=place.folder, check=True)
    _, ended = run(place, "review")
    assert ended["output"].startswith("There is nothing to review")


@pytest.mark.parametrize(("verdict", "said"), [("done", "it is so"), ("continue", "it is better")])
def test_research_is_completed_where_a_judge_wants_it(
    place: Place, serve: Any, verdict: str, said: str
) -> None:
    """Three aspects, one answer, and another one if the first does not do."""
    serve(
        Text(VERDICT.format(verdict, "no source"), match="each claim names its source"),
        Text("it is better", match="This answer is incomplete: no source"),
        Text("it is so", match="These are the results"),
        *[Text("one aspect", match="Research one aspect")] * 3,
    )
    states, ended = run(place, "research", "--var", "question=why?")
    assert (ended["status"], ended["output"]) == ("succeeded", said)
    assert (states["judge"], states["write"]) == ("done", "skipped")
