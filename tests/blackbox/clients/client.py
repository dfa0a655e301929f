"""A client that is generated: it says a message, follows the session, and prints the answer.

python client.py HOST:PORT TOKEN FOLDER
"""

import json
import sys

from steersman_client import AuthenticatedClient
from steersman_client.api.default import events, open_session, say, show_session
from steersman_client.models import (
    AcceptedEvent,
    AnswerEvent,
    EventPage,
    NewMessage,
    NewMessageAs,
    NewSession,
    SessionInfo,
    TurnEndedEvent,
)

address, token, folder = sys.argv[1:]
with AuthenticatedClient(f"http://{address}", token) as client:
    begun = open_session.sync(client=client, body=NewSession(folder=folder))
    assert isinstance(begun, SessionInfo), begun
    body = NewMessage(text="hello", as_=NewMessageAs.QUEUE)
    said = say.sync(begun.id, client=client, body=body)
    assert isinstance(said, AcceptedEvent), said
    path = f"/api/v1/sessions/{begun.id}/events"
    with client.get_httpx_client().stream("GET", path) as stream:
        for line in stream.iter_lines():
            if line.startswith("data: ") and json.loads(line[6:])["type"] == "turn_ended":
                break
    newest = show_session.sync(begun.id, client=client)
    assert isinstance(newest, SessionInfo), newest
    page = events.sync(begun.id, client=client, upto=newest.seq)
    assert isinstance(page, EventPage), page
    (ended,) = [event for event in page.events if isinstance(event, TurnEndedEvent)]
    (answer,) = [event for event in page.events if isinstance(event, AnswerEvent)]
    print(json.dumps({"id": said.id, "status": ended.status, "answer": answer.text}))
