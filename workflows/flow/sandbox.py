"""The sandbox of templates: Jinja2 with expressions, `if` and `for`, without side effects, and bounded.

Values are plain data (text, numbers, lists, tables). Of methods and filters only those below are
there. The tree of each template is looked over before it is compiled: statements that define things
are refused, and whatever goes through many items pays for them (`TemplateBudget`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, MappingView, Sized
from functools import wraps
from typing import Any, Final, cast

from jinja2 import StrictUndefined, nodes, pass_context
from jinja2.filters import FILTERS as DEFAULT_FILTERS
from jinja2.runtime import Context, LoopContext, Undefined
from jinja2.sandbox import SandboxedEnvironment
from jinja2.tests import TESTS as DEFAULT_TESTS
from jinja2.visitor import NodeTransformer

from ...machines.context import ends_of
from ...machines.errors import TemplateError
from ..document import is_list, is_table

# What one template may cost: a budget of work, and sizes that nothing in it can pass --------------
# There is no clock in it: a template that is too much is so everywhere, each time, and in the simulator.


MAX_CHARACTERS: Final = 4 * 2**20
"""Characters of a text that a template makes."""
MAX_ITEMS: Final = 1_000_000
"""Items of a list that a template makes."""
_MAX_WORK: Final = 2_000_000
_MAX_BITS: Final = 4096
_CHARACTERS_A_TICK: Final = 1024


class TemplateBudget:
    """The work left for one template; each item costs 1, and so does a number of characters."""

    def __init__(self) -> None:
        self.left = _MAX_WORK

    def spend(self, work: int) -> None:
        """Spend work. Raises `TemplateError` when none is left."""
        self.left -= work
        if self.left < 0:
            raise TemplateError(
                "is too expensive: it loops over too many items",
                "let a command do it, or a step with `for_each`",
            )

    def weigh(self, value: Any) -> Any:
        """Pay for one pass through a value; a lazy value becomes a list."""
        if isinstance(value, Undefined):
            return value  # using it raises that it is not there
        if isinstance(value, str):
            self.spend(1 + len(value) // _CHARACTERS_A_TICK)
        elif isinstance(value, Sized):
            self.spend(1 + len(value))
        elif isinstance(value, Iterator):
            return self._collect(value)  # pyright: ignore[reportUnknownArgumentType]
        return value

    def _collect(self, items: Iterable[Any]) -> list[Any]:
        found: list[Any] = []
        for item in items:
            self.spend(1)
            found.append(item)
        return found


def check_size(value: Any) -> Any:
    """Return a text or list that is not too long. Raises `TemplateError`."""
    limit = MAX_CHARACTERS if isinstance(value, str) else MAX_ITEMS
    if isinstance(value, Sized) and len(value) > limit:
        refuse_size(limit, "characters" if isinstance(value, str) else "items")
    return value


def refuse_size(limit: int, unit: str) -> None:
    """Raise `TemplateError`: more than `limit` of something."""
    raise TemplateError(f"makes more than {limit:,} {unit}", "write large things to a file")


def check_number(value: Any) -> Any:
    """Return a number that is not too large. Raises `TemplateError`."""
    if isinstance(value, int) and value.bit_length() > _MAX_BITS:
        raise TemplateError("makes a number that is too large")
    return value


def text_of(value: Any) -> str:
    """Write a value into a text: JSON, but a text as it is and nothing for none."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(check_number(value))
    return json_of(value)


@pass_context
def _written(context: Context, value: Any) -> str:
    """Write a value into a text, with its ends only where the text has room for no more."""
    most = context.get(LONGEST, 0)
    text = text_of(value)
    return ends_of(text, most) if most else text


def plain(value: Any) -> Any:
    """Return what an expression gave as data: each sequence, and each view of a table, as a list.

    Raises `TemplateError` for a method that was not called.
    """
    if callable(value):
        raise TemplateError("is a method that was not called", "write `()` behind it")
    if isinstance(value, tuple | range | MappingView) and isinstance(value, Iterable):
        return [plain(element) for element in value]  # pyright: ignore[reportUnknownVariableType]
    return value


def json_of(value: Any, indent: int | None = None) -> str:
    """Write a value as JSON. Raises `TemplateError` for other or too large values."""
    import json

    _check_whole(value)
    try:
        return json.dumps(value, ensure_ascii=False, indent=indent, default=list)
    except (TypeError, ValueError, RecursionError) as error:
        raise TemplateError("has a value that can't be written into a text") from error


def _check_whole(value: Any) -> None:
    """Measure a value before it is written: the same list may occur in it many times."""
    size, waiting = 0, [value]
    while waiting:
        element = waiting.pop()
        size += 4 + (len(element) if isinstance(element, Sized) else 0)
        if size > MAX_CHARACTERS:
            refuse_size(MAX_CHARACTERS, "characters")
        if isinstance(element, dict):
            waiting += element.keys()
            waiting += element.values()
        elif isinstance(element, list | tuple):
            waiting += element


BUDGET: Final = "__budget"
"""The name under which a template gets its budget."""
LONGEST: Final = "__longest"
"""The name under which it gets the characters of a value that are written at most; 0: all."""

METHODS: Final[Mapping[type, frozenset[str]]] = {
    str: frozenset(
        "capitalize casefold count endswith find index isalnum isalpha isdigit islower isspace istitle "
        "isupper lower lstrip partition removeprefix removesuffix rfind rpartition rsplit rstrip split "
        "splitlines startswith strip swapcase title upper".split()
    ),
    list: frozenset({"count", "index"}),
    tuple: frozenset({"count", "index"}),
    dict: frozenset({"get", "items", "keys", "values"}),
}
"""Methods of values in a template, by type; none makes a value larger."""

_LOOP: Final = frozenset({"first", "index", "index0", "last", "length"})
_FROM_JINJA: Final = (
    "abs capitalize count d default dictsort first float int items last length list lower map max min "
    "reject rejectattr reverse select selectattr sort title trim truncate unique upper wordcount"
).split()
TESTS: Final = (
    "boolean defined divisibleby eq even false float ge gt in integer iterable le lower lt mapping ne "
    "none number odd sequence string true undefined upper"
).split()


def _spend(context: Context, *values: Any) -> list[Any]:
    budget: TemplateBudget = context.resolve_or_missing(BUDGET)
    return [budget.weigh(value) for value in values]


def _bounded(function: Any) -> Callable[..., Any]:
    """Make a filter or test pay for its input and its result."""
    takes = getattr(function, "jinja_pass_arg", None)

    @pass_context
    @wraps(function)
    def filtered(context: Context, *values: Any, **options: Any) -> Any:
        first: dict[str, tuple[Any, ...]] = {
            "context": (context,),
            "environment": (context.environment,),
        }
        first["eval_context"] = (context.eval_ctx,)
        given = first[takes.name if takes else ""] if takes else ()
        found = function(*given, *_spend(context, *values), **options)
        return check_number(check_size(_spend(context, found)[0]))

    return filtered


def _join(items: Any, separator: str = "", attribute: str | None = None) -> str:
    if attribute is not None:
        items = [ENVIRONMENT.getitem(item, attribute) for item in items]
    return _joined([text_of(item) for item in items], str(separator))


def _joined(texts: list[str], separator: str = "") -> str:
    if sum(map(len, texts)) + len(separator) * len(texts) > MAX_CHARACTERS:
        refuse_size(MAX_CHARACTERS, "characters")
    return separator.join(texts)


def _replace(text: Any, old: str, new: str, count: int = -1) -> str:
    text, found = text_of(text), text_of(text).count(old)
    if len(text) + found * len(new) > MAX_CHARACTERS:
        refuse_size(MAX_CHARACTERS, "characters")
    replaced: str = text.replace(old, new, count)
    return replaced


def _indent(text: Any, width: int = 4, first: bool = False) -> str:
    space = " " * min(max(int(width), 0), 80)
    lines = text_of(text).split("\n")
    indented = [
        space + line if line and (first or number) else line for number, line in enumerate(lines)
    ]
    return _joined(indented, "\n")


def _sum(items: Any, attribute: str | None = None) -> Any:
    numbers = [
        item if attribute is None else ENVIRONMENT.getitem(item, attribute) for item in items
    ]
    if not all(isinstance(number, int | float) for number in numbers):
        raise TemplateError("`sum` adds numbers only")
    return sum(numbers)


def _round(number: Any, digits: int = 0) -> Any:
    return round(float(number), min(max(int(digits), -300), 300))


def _tojson(value: Any, indent: int | None = None) -> str:
    return json_of(value, None if indent is None else min(max(int(indent), 0), 16))


def _path(take: str) -> Callable[[Any], str]:
    def part(value: Any) -> str:
        from pathlib import PurePosixPath

        return str(getattr(PurePosixPath(text_of(value)), take))

    return part


_OWN: Final[Mapping[str, Callable[..., Any]]] = {
    "basename": _path("name"),
    "dirname": _path("parent"),
    "indent": _indent,
    "join": _join,
    "replace": _replace,
    "round": _round,
    "stem": _path("stem"),
    "string": text_of,
    "suffix": _path("suffix"),
    "sum": _sum,
    "tojson": _tojson,
}
FILTERS: Final = tuple(sorted({*_FROM_JINJA, *_OWN}))


@pass_context
def _weighed(context: Context, value: Any) -> Any:
    return _spend(context, value)[0]


class _Environment(SandboxedEnvironment):
    """Looks up names in plain data only, and bounds the results of operators."""

    intercepted_binops = frozenset({"+", "-", "*", "/", "//", "%", "**"})

    def getattr(self, obj: Any, attribute: str) -> Any:
        if is_table(obj) and attribute in obj:
            return obj[attribute]  # also where the table has a method of this name
        if isinstance(obj, Undefined):
            str(obj)  # raises, and says what is not there
        if attribute in _allowed(obj):
            return getattr(obj, attribute)
        return self.undefined(f"there is no `{attribute}` in {_called(obj)}", obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        try:
            if isinstance(obj, str) or is_table(obj) or is_list(obj):
                return obj[argument]
        except (LookupError, TypeError):
            pass
        if isinstance(argument, str):
            return self.getattr(obj, argument)
        return self.undefined(f"there is no [{argument!r:.40}] in {_called(obj)}", obj, argument)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        is_sum = operator == "+" and _is_sized(left) and _is_sized(right)
        if is_sum:
            limit = MAX_CHARACTERS if isinstance(left, str) else MAX_ITEMS
            if len(left) + len(right) > limit:
                refuse_size(limit, "characters" if isinstance(left, str) else "items")
            _spend(context, left, right)
        elif not (isinstance(left, int | float) and isinstance(right, int | float)):
            _refuse_operands(operator, left, right)
        elif operator == "**" and right > 1024:
            raise TemplateError("makes a number that is too large")
        return check_number(super().call_binop(context, operator, left, right))

    def is_safe_callable(self, obj: Any) -> bool:
        """Whether it may be called: `range`, or a method that `getattr` has let through."""
        name = getattr(obj, "__name__", "")
        return obj is self.globals["range"] or name in _allowed(getattr(obj, "__self__", None))


def _allowed(obj: object) -> frozenset[str]:
    """Name what may be taken from an object with a dot, besides the keys of a table."""
    return _LOOP if isinstance(obj, LoopContext) else METHODS.get(type(obj), frozenset())


def _is_sized(value: object) -> bool:
    return isinstance(value, str | list)


def _refuse_operands(operator: str, left: Any, right: Any) -> None:
    for operand in (left, right):
        if isinstance(operand, Undefined):
            str(operand)  # raises, and says what is not there
    hint = "use `~` to join texts" if operator in "+%" else "numbers can be calculated with"
    raise TemplateError(f"`{operator}` of {_called(left)} and {_called(right)}", hint)


def _called(value: object) -> str:
    names = {"str": "a text", "list": "a list", "tuple": "a list", "dict": "a table"}
    names |= {"bool": "a yes or no", "int": "a number", "float": "a number", "NoneType": "nothing"}
    return names.get(type(value).__name__, "this")


def _environment() -> _Environment:
    environment = _Environment(
        undefined=StrictUndefined,
        finalize=_written,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        optimized=False,
        cache_size=0,
    )
    found: dict[str, Any] = {name: DEFAULT_FILTERS[name] for name in _FROM_JINJA}
    found.update(_OWN)
    environment.filters.clear()
    environment.filters |= {name: _bounded(function) for name, function in found.items()}
    environment.filters |= {"_weighed": _weighed, "_joined": _bounded(_join)}
    environment.tests.clear()
    environment.tests |= {name: _bounded(DEFAULT_TESTS[name]) for name in TESTS}
    in_range = environment.globals["range"]
    environment.globals.clear()
    environment.globals["range"] = in_range
    return environment


class _Bounding(NodeTransformer):
    """Makes each loop, comparison, slice and concatenation pay for its items."""

    def visit_For(self, node: nodes.For) -> nodes.Node:
        self.generic_visit(node)
        node.iter = _filter(node.iter, "_weighed")
        return node

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:
        self.generic_visit(node)
        node.expr = _filter(node.expr, "_weighed")
        for operand in node.ops:
            operand.expr = _filter(operand.expr, "_weighed")
        return node

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:
        self.generic_visit(node)
        if isinstance(node.arg, nodes.Slice):
            node.node = _filter(node.node, "_weighed")
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        self.generic_visit(node)
        return _filter(nodes.List(node.nodes, lineno=node.lineno), "_joined")

    def visit_Call(self, node: nodes.Call) -> nodes.Node:
        self.generic_visit(node)
        if isinstance(node.node, nodes.Getattr):
            node.node.node = _filter(node.node.node, "_weighed")
        return node


def _filter(node: nodes.Node, name: str) -> nodes.Filter:
    return nodes.Filter(cast(nodes.Expr, node), name, [], [], None, None, lineno=node.lineno)


def bounded(tree: nodes.Template) -> nodes.Template:
    """Return a tree that pays for its work."""
    bounded: nodes.Template = _Bounding().visit(tree)
    bounded.set_environment(ENVIRONMENT)
    return bounded


ENVIRONMENT: Final = _environment()
