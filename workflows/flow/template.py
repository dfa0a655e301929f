"""Filling in: texts with `{{ … }}`, argument lists, and the expressions of `when` and `for_each`.

Sandboxed Jinja2 (`sandbox.py`). What is not there is an error, never an empty text. A value is put
into a text as it is: nothing is quoted, and so nothing is ever given to a shell as its text; each
element of an argument list is filled in separately and stays one argument, whatever is in it.
"""

from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Final

from jinja2 import TemplateSyntaxError, UndefinedError, nodes
from jinja2.environment import Template
from jinja2.exceptions import SecurityError
from jinja2.exceptions import TemplateError as JinjaError
from jinja2.parser import Parser
from jinja2.runtime import Undefined

from ...machines.errors import TemplateError
from ..document import is_list, is_table
from ..problem import did_you_mean
from .sandbox import (
    BUDGET,
    ENVIRONMENT,
    LONGEST,
    MAX_CHARACTERS,
    MAX_ITEMS,
    TemplateBudget,
    bounded,
    plain,
    refuse_size,
    text_of,
)

_MAX_LENGTH: Final = 200_000  # characters of a template itself
_MAX_NESTING: Final = 60
_ALLOWED: Final = (
    nodes.Expr,
    nodes.For,
    nodes.If,
    nodes.Keyword,
    nodes.Operand,
    nodes.Output,
    nodes.Pair,
    nodes.Template,
)
_HIDDEN: Final = ("_", "self", "super", "caller", "varargs", "kwargs")  # Jinja's own names
_RESULT: Final = "result"


_TROUBLE: Final = (
    ArithmeticError,
    AttributeError,
    JinjaError,
    LookupError,
    MemoryError,
    RecursionError,
    RuntimeError,
    TemplateError,
    TypeError,
    ValueError,
)
"""The errors that an operator or a filter may raise for some values."""


def is_template(text: str) -> bool:
    """Whether a text has a placeholder."""
    return "{" in text and ("{{" in text or "{%" in text or "{#" in text)


def render(text: str, values: Mapping[str, Any], longest: int = 0) -> str:
    """Fill in a text, of each value at most `longest` characters; 0: all. Raises `TemplateError`."""
    if not is_template(text):
        return text
    template = _compiled(text)
    chunks: list[str] = []
    size = 0
    try:
        for chunk in template.generate({**values, BUDGET: TemplateBudget(), LONGEST: longest}):
            size += len(chunk)
            if size > MAX_CHARACTERS:
                refuse_size(MAX_CHARACTERS, "characters")
            chunks.append(chunk)
    except _TROUBLE as error:
        raise _explained(error) from error
    return "".join(chunks)


def render_words(words: Iterable[str], values: Mapping[str, Any]) -> tuple[str, ...]:
    """Fill in each argument separately; one that is only a list becomes one argument an item.

    Raises `TemplateError`, also for what no program can be given: a NUL character.
    """
    found: list[str] = []
    for word in words:
        expression = _only_expression(word)
        value = evaluate(expression, values) if expression else render(word, values)
        found += [text_of(element) for element in value] if is_list(value) else [text_of(value)]
    if any("\0" in word for word in found):
        raise TemplateError("makes an argument with a NUL character")
    return tuple(found)


def render_value(value: Any, values: Mapping[str, Any]) -> Any:
    """Fill in all texts of a table or list; a text that is only `{{ … }}` keeps its value's type."""
    if isinstance(value, str):
        expression = _only_expression(value)
        return evaluate(expression, values) if expression else render(value, values)
    if is_table(value):
        return {name: render_value(element, values) for name, element in value.items()}
    if is_list(value):
        return [render_value(element, values) for element in value]
    return value


def evaluate(expression: str, values: Mapping[str, Any]) -> Any:
    """Return the value of an expression as plain data. Raises `TemplateError`."""
    template = _compiled_expression(expression)
    try:
        context = template.new_context({**values, BUDGET: TemplateBudget()})
        for _ in template.root_render_func(context):
            pass
        found = context.vars[_RESULT]
        if isinstance(found, Undefined):
            str(found)  # raises, and says what is not there
        return plain(found)
    except _TROUBLE as error:
        raise _explained(error) from error


def holds(expression: str, values: Mapping[str, Any]) -> bool:
    """Whether a condition holds: what it gives is true, or not empty. Raises `TemplateError`."""
    return bool(evaluate(expression, values))


def items_of(for_each: str | tuple[Any, ...], values: Mapping[str, Any]) -> tuple[Any, ...]:
    """List the items of a step. Raises `TemplateError` for a value that is no list."""
    if isinstance(for_each, tuple):
        return tuple(render_value(list(for_each), values))
    found = evaluate(for_each, values)
    if not is_list(found):
        hint = '`output = "lines"` makes a list of the lines of a command'
        raise TemplateError(f"`{for_each}` is no list of items", hint)
    if len(found) > MAX_ITEMS:
        refuse_size(MAX_ITEMS, "items")
    return tuple(found)


def parse_template(text: str) -> nodes.Template:
    """Parse a text within its bounds. Raises `TemplateError` with the line in it."""
    if len(text) > _MAX_LENGTH:
        raise TemplateError(f"is longer than {_MAX_LENGTH:,} characters")
    with _parsing():
        tree = ENVIRONMENT.parse(text)
    _look_over(tree)
    return tree


def parse_expression(text: str) -> nodes.Template:
    """Parse an expression, as the tree of a template that keeps it. Raises `TemplateError`."""
    if is_template(text):
        raise TemplateError("is an expression already", "write it without `{{` and `}}`")
    if len(text) > _MAX_LENGTH:
        raise TemplateError(f"is longer than {_MAX_LENGTH:,} characters")
    with _parsing("expression"):
        parser = Parser(ENVIRONMENT, text, state="variable")
        expression = parser.parse_expression()
        if not parser.stream.eos:
            rest = str(parser.stream.current.value)
            hint = "`==` compares" if rest == "=" else ""
            raise TemplateError(f"continues after its end: `{rest}`", hint)
    tree = nodes.Template([nodes.Output([expression], lineno=1)], lineno=1)
    tree.set_environment(ENVIRONMENT)
    _look_over(tree)
    return tree


def _look_over(tree: nodes.Template) -> None:
    """Refuse statements that define or include names, and too deep nesting."""
    waiting: list[tuple[nodes.Node, int]] = [(tree, 0)]
    while waiting:
        node, depth = waiting.pop()
        if depth > _MAX_NESTING:
            raise TemplateError("is nested too deeply", "let a command do it", line=node.lineno)
        is_hidden = isinstance(node, nodes.Name) and node.name.startswith(_HIDDEN)
        is_recursive = isinstance(node, nodes.For) and node.recursive
        if not isinstance(node, _ALLOWED) or is_hidden or is_recursive:
            name = type(node).__name__.lower()
            hint = "`{{ … }}`, `{% if %}` and `{% for %}` can be used"
            raise TemplateError(f"uses an unsupported statement: `{name}`", hint, line=node.lineno)
        _check_known(node)
        waiting += reversed([(child, depth + 1) for child in node.iter_child_nodes()])


def _check_known(node: nodes.Node) -> None:
    if not isinstance(node, nodes.Filter | nodes.Test):
        return
    is_filter = isinstance(node, nodes.Filter)
    known = ENVIRONMENT.filters if is_filter else ENVIRONMENT.tests
    if node.name in known and not node.name.startswith("_"):
        return
    names = [name for name in known if not name.startswith("_")]
    hint = did_you_mean(node.name, names) or f"known: {', '.join(sorted(names))}"
    noun = "filter" if is_filter else "test"
    raise TemplateError(
        f"uses the {noun} `{node.name}`, which is not there", hint, line=node.lineno
    )


def _only_expression(text: str) -> str:
    """Return the expression of a text that is only `{{ … }}`; else an empty text."""
    if not (text.startswith("{{") and text.endswith("}}")):
        return ""
    inner = text[2:-2].strip(" -\n")
    return "" if "{{" in inner or "}}" in inner or "{%" in inner else inner


@lru_cache(maxsize=4096)
def _compiled(text: str) -> Template:
    return _compile(bounded(parse_template(text)))


@lru_cache(maxsize=4096)
def _compiled_expression(text: str) -> Template:
    tree = bounded(parse_expression(text))
    output = tree.body[0]
    assert isinstance(output, nodes.Output)
    name = nodes.Name(_RESULT, "store", lineno=1)
    tree.body = [nodes.Assign(name, output.nodes[0], lineno=1)]
    tree.set_environment(ENVIRONMENT)
    return _compile(tree)


def _compile(tree: nodes.Template) -> Template:
    with _parsing():
        return ENVIRONMENT.from_string(tree)


@contextmanager
def _parsing(noun: str = "template") -> Generator[None]:
    """Turn what the parser and the compiler raise into `TemplateError`."""
    try:
        yield
    except TemplateSyntaxError as error:
        said = (error.message or "").replace("'", "`").rstrip(".")
        message = f"is no {noun}: {said[:1].lower()}{said[1:]}"
        raise TemplateError(message, line=error.lineno) from error
    except (RecursionError, SyntaxError, ValueError, MemoryError) as error:
        raise TemplateError("is nested too deeply", "let a command do it") from error


def _explained(error: Exception) -> TemplateError:
    """Describe an error while filling in."""
    match error:
        case TemplateError():
            return error
        case UndefinedError():
            said = str(error).replace("'", "`")
            return TemplateError(f"uses an undefined value: {said}")
        case ZeroDivisionError():
            return TemplateError("divides by zero")
        case SecurityError():
            return TemplateError("calls something that cannot be called here")
        case OverflowError():
            return TemplateError("makes something that is too large")
        case _:
            said = str(error).replace("'", "`")[:200]
            return TemplateError(f"can't be filled in: {said or type(error).__name__}")
