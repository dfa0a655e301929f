"""Pictures that a message names: sent as pictures where the model takes them, and again, unchanged."""

import base64
import json
from typing import Any

import pytest
from support.driver import Place
from support.model_server import Text

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
DATA = base64.b64encode(PIXEL).decode()
CHAT = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{DATA}"}}
ANTHROPIC = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": DATA},
}


def user_parts(server: Any, at: int) -> list[Any]:
    """What the person's messages of a request hold, in order."""
    said = [
        message for message in server.requests[at].body["messages"] if message["role"] == "user"
    ]
    return [message["content"] for message in said]


@pytest.mark.parametrize(
    ("provider", "model", "part"),
    [("openai", "images = true", CHAT), ("anthropic", "", ANTHROPIC)],
)
def test_a_picture_is_sent_and_sent_again(
    place: Place, serve, provider: str, model: str, part: dict[str, Any]
) -> None:
    """The next call begins with the same bytes, also after a kill -9."""
    server = serve(Text("A pixel."), provider=provider, model=model)
    (place.folder / "shot.png").write_bytes(PIXEL)
    chat = place.chat("what is in @shot.png?")
    chat.wait_text("Attached shot.png (picture, 70 bytes)")
    chat.wait("turn_ended", status="completed")
    (place.folder / "shot.png").unlink()
    chat.kill()
    chat = place.chat("--continue")
    chat.completes("sure?")
    first, again = user_parts(server, 0), user_parts(server, 1)
    assert part in first[0]
    assert "what is in @shot.png?" in json.dumps(first)
    cleaned = json.loads(
        json.dumps(first[0]).replace(', "cache_control": {"type": "ephemeral"}', "")
    )
    assert (
        json.loads(json.dumps(again[0]).replace(', "cache_control": {"type": "ephemeral"}', ""))
        == cleaned
    )


def test_a_model_of_text_gets_none(place: Place, serve) -> None:
    """The person is told, with the key that says otherwise; a picture that is too large is not sent."""
    server = serve(Text("Well."))
    (place.folder / "shot.png").write_bytes(PIXEL)
    chat = place.chat("what is in @shot.png?")
    chat.wait_text(
        "Not attached: shot.png: the model is not known to take pictures; `images = true`"
    )
    chat.wait("turn_ended", status="completed")
    assert DATA not in json.dumps(server.requests[0].body)
    assert chat.close() == 0
    place.configure(server.base_url, model="images = true")
    (place.folder / "shot.png").write_bytes(PIXEL + b"\0" * 2_000_000)
    chat = place.chat("what is in @shot.png?")
    chat.wait_text("a picture may have 2.0 MB at most")
    chat.wait("turn_ended", status="completed")
