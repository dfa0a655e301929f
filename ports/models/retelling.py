"""How a very small model is told what its tools found, so that it says that and nothing else.

It loses the thread in a conversation of calls and results. So the question is asked anew beneath
the result, and the first words of the answer are put into its mouth ("prefilling"); servers of
llama.cpp go on from there and return these words as part of the answer.
"""

from ...machines.conversation import ChatMessage, ToolRequest

__all__ = ["retell"]

_LONGEST = 3000  # characters of a result; the model reads some 300 tokens in a second
_CUT = "\n[…]"


def retell(messages: tuple[ChatMessage, ...]) -> tuple[ChatMessage, ...]:
    """Rewrite the calls and results since the newest user message; others stay as they are."""
    asked = max((i for i, one in enumerate(messages) if one.role == "user"), default=-1)
    since = messages[asked + 1 :]
    if asked < 0 or not since or since[-1].role != "tool":
        return messages
    calls = {call.call: call for message in since for call in message.tool_calls}
    results = [one for one in since if one.role == "tool"]
    each = _LONGEST // len(results)
    told = "\n".join(_told(calls.get(one.call), one.text, each) for one in results)
    first = calls.get(results[0].call)
    return (
        *messages[: asked + 1],
        ChatMessage("assistant", "I will do that."),
        ChatMessage("user", f"{told}\n{messages[asked].text}"),
        ChatMessage("assistant", f"{_title(first)}:\n"),
    )


def _told(call: ToolRequest | None, text: str, longest: int) -> str:
    text = text if len(text) <= longest else text[:longest] + _CUT
    return f"{_title(call)}:\n{text}"


def _title(call: ToolRequest | None) -> str:
    path = call.arguments.get("path", "") if call else ""
    match call.tool if call else "":
        case "read":
            return f"The file {path} says"
        case "list":
            return "The files are"
        case "search":
            return "Found"
        case _:
            return "The result is"
