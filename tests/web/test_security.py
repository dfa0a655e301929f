"""Attacks on `steersman serve`: by pages, by programs without a token, and by devices with a small scope."""

import json

from support.driver import Gate, Place
from support.model_server import Text, Tools
from web.conftest import Start

# Scopes -------------------------------------------------------------------------------------------

SPELLINGS = [
    "/permissions list",
    "/PERMISSIONS list",
    "  /permissions list",
    "\uff0fpermissions list",
    "/permissions! list",
    "/permissions\tlist",
    "\n/Permissions\nlist",
]
BEYOND = [
    *("/limits more", "/model test-model", "/routes use x", "/resume last", "/new", "/finalize"),
    *("/export stolen.md", "/queue export stolen.toml", "/queue EXPORT stolen.toml"),
    *("/queue import x.toml", "/mcp restart x", "/goal --gate 'touch stolen' win"),
    *("/goal next --gate 'touch stolen' win", "/answer q1 allow"),
]


def test_no_spelling_gives_a_speaker_more(place: Place, serve, served: Start) -> None:
    """Commands that need `approve` are refused however they are typed, and as data; talk is not."""
    serve(Text("Hello."))
    web = served()
    session = web.begin()
    web.pair("speaker", "speak")
    for text in (*SPELLINGS, *BEYOND):
        answer = web.ask("POST", f"sessions/{session}/messages", {"text": text})
        assert answer.status == 403, (text, answer)
        assert "needs approve" in answer.data["detail"]
    data: list[tuple[str, dict[str, object]]] = [
        ("permissions", {}),
        ("permissions list", {}),
        ("export", {"file": "stolen.md"}),
        ("queue export", {"file": "stolen.toml"}),
        ("answer", {"question": "q1", "choice": "allow"}),
        ("goal", {"text": "win", "gates": ["touch stolen"]}),
    ]
    for name, arguments in data:
        body = {"name": name, "arguments": arguments}
        answer = web.ask("POST", f"sessions/{session}/commands", body)
        assert answer.status == 403, (name, answer)
    for name in ("PERMISSIONS", " permissions", "permissions\tlist"):
        answer = web.ask("POST", f"sessions/{session}/commands", {"name": name})
        assert answer.status == 422, (name, answer)
    question = f"sessions/{session}/questions/q1"
    assert web.ask("POST", question, {"choice": "allow"}).status == 403
    assert list(place.folder.iterdir()) == []
    for text in ("/usage", " /QUEUE list", "/diff"):
        assert web.ask("POST", f"sessions/{session}/messages", {"text": text}).status == 200, text
    said = {"text": "/permissions list", "as": "queue"}
    accepted = web.ask("POST", f"sessions/{session}/messages", said)
    assert (accepted.status, accepted.data["as"]) != (200, "command")


def test_one_who_looks_changes_nothing(serve, served: Start) -> None:
    """Every method but GET is refused, in every place of the interface."""
    serve(Text("Hello."))
    web = served()
    session = web.begin()
    described = web.ask("GET", "/openapi.json").data["paths"]
    web.pair("looker", "look")
    refused = 0
    for path, methods in described.items():
        real = path.replace("{session}", session).replace("{number}", "1")
        for method in methods:
            if method != "get":
                answer = web.ask(method.upper(), real.replace("{question}", "q1"), {})
                assert answer.status == 403, (method, path, answer)
                refused += 1
    assert refused >= 8
    assert web.ask("GET", f"sessions/{session}").status == 200


def test_a_speaker_cannot_answer_a_question(place: Place, serve, served: Start, gate: Gate) -> None:
    """Neither by the interface nor by a command; the question stays open."""
    serve(Tools([{"tool": "shell", "arguments": {"command": gate.command}}]), Text("Done."))
    web = served()
    session = web.begin()
    web.ask("POST", f"sessions/{session}/messages", {"text": "work"})
    question = web.until(session, "question")[-1]["id"]
    web.pair("speaker", "speak")
    for text in (
        f"/answer {question} allow",
        f" /ANSWER {question} always",
        f"/answer! {question} deny",
    ):
        said = web.ask("POST", f"sessions/{session}/messages", {"text": text})
        assert said.status == 403, said
    choice = {"question": question, "choice": "allow"}
    said = web.ask("POST", f"sessions/{session}/commands", {"name": "answer", "arguments": choice})
    assert said.status == 403, said
    state = json.dumps(web.ask("GET", f"sessions/{session}/inspect").data)
    assert question in state
    body = {"resume": session, "model": "other"}
    assert web.ask("POST", "sessions", body).status == 422
    for more in ({"is_yes": True}, {"launch": {"is_yes": True}}, {"can_ask": False}):
        answer = web.ask("POST", "sessions", {"folder": str(place.folder), **more})
        assert answer.status == 422, answer
