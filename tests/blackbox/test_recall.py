"""The end of a conversation, as a person sees it who resumes the session."""

import re

from support.driver import Place
from support.model_server import Text

ANSWER = (
    "\n\n".join(f"paragraph {number}" for number in range(1, 12))
    + f"\n\x1b[31mred\x1b[0m\n{'z' * 900}"
)


def test_a_resumed_session_shows_how_it_ended(place: Place, serve) -> None:
    """The first lines of the message and the last ones of the answer, cut, without escape sequences."""
    serve(Text(ANSWER), Text("Well."))
    first = place.chat()
    first.completes({"text": "one\ntwo\nthree\nfour"})
    first.close()
    second = place.chat("colours")
    second.wait("turn_ended")
    reply = second.ask(f"/resume {first.session}")
    assert second.close() == 0
    shown = reply["text"].partition("\n")[2].splitlines()
    paragraphs = [f"  paragraph {number}" for number in range(6, 12)]
    assert shown == [
        "Last said here (/history shows more):",
        "  you: one",
        "  two",
        "  three …",
        "  agent: …",
        *paragraphs,
        "  red",
        f"  {'z' * 400} …",
    ]
    assert not re.search(r"\x1b", reply["text"])
