"""Calls that a model wrote as text, in the forms that small models write."""

import pytest

from steersman.ports.models.said_calls import calls_in

OFFERED = ("read", "shell")
FORMS = {
    "qwen": '<tool_call>\n{"name": "read", "arguments": {"path": "a.txt"}}\n</tool_call>',
    "tools": '<tools>\n{"name": "read", "arguments": {"path": "a.txt"}}\n</tools>',
    "coder": "<function=read>\n<parameter=path>\na.txt\n</parameter>\n</function>",
    "coder, JSON": '<function=read>{"path": "a.txt"}</function>',
    "fence": 'I will look.\n```json\n{"name": "read", "arguments": {"path": "a.txt"}}\n```',
    "bare": '{"tool": "read", "arguments": {"path": "a.txt"}}',
    "flat": '{"tool": "read", "path": "a.txt"}',
    "parameters": '{"name": "read", "parameters": {"path": "a.txt"}}',
    "text": r'{"name": "read", "arguments": "{\"path\": \"a.txt\"}"}',
    "api": '{"type": "function", "function": {"name": "read", "arguments": {"path": "a.txt"}}}',
    "list": '[TOOL_CALLS] [{"name": "read", "arguments": {"path": "a.txt"}}]',
}


@pytest.mark.parametrize("form", FORMS)
def test_a_call_in_any_form(form: str) -> None:
    """Whatever the frame and the names of the keys."""
    (call,) = calls_in(FORMS[form], OFFERED)
    assert (call.tool, call.arguments, call.fault) == ("read", {"path": "a.txt"}, "")


def test_several_calls_in_order() -> None:
    """Each is found, also side by side in a list."""
    text = '{"tool": "read", "path": "a"} and [{"tool": "read", "path": "b"}, {"tool": "shell"}]'
    assert [(call.tool, call.arguments.get("path")) for call in calls_in(text, OFFERED)] == [
        ("read", "a"),
        ("read", "b"),
        ("shell", None),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "Use the tool read on a.txt.",
        '{"name": "shop", "timeout": 30}',
        '{"name": "write", "arguments": {"path": "a.txt"}}',
        '{"name": "read", "arguments": ',
        "{" * 5000,
        "",
    ],
)
def test_other_text_is_no_call(text: str) -> None:
    """Data, a tool that is not offered, half an object, hostile nesting."""
    assert calls_in(text, OFFERED) == []


def test_arguments_that_cannot_be_read_are_a_fault() -> None:
    """The model is told what is wrong instead of the person seeing its call."""
    (call,) = calls_in('{"name": "read", "arguments": "a.txt"}', OFFERED)
    assert "not a JSON object" in call.fault
