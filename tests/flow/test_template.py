"""Filling in: what templates can do, what they can't, and what they cost."""

from typing import Any

import pytest

from steersman.machines.errors import TemplateError
from steersman.workflows.flow.template import (
    evaluate,
    holds,
    items_of,
    render,
    render_value,
    render_words,
)

VALUES: dict[str, Any] = {
    "vars": {"glob": "src/*.ts", "many": [str(number) for number in range(100_000)]},
    "steps": {
        "find": {"output": ["a b.ts", "$(rm -rf)"], "items": 3, "exit_code": 1, "error": None},
        "fix-it": {"output": {"ok": True}},
    },
    "item": "src/deep/file.ts",
}


@pytest.mark.parametrize(
    ("template", "wanted"),
    [
        ("nothing to fill in {", "nothing to fill in {"),
        ("{{ vars.glob }}\n", "src/*.ts\n"),
        ("{{ steps.find.items }}", "3"),  # and not the method of a table
        ("{{ steps.find.output }}", '["a b.ts", "$(rm -rf)"]'),
        ("{{ steps['fix-it'].output.ok }} {{ steps.find.error }}", "true "),
        ("{{ item | stem }}{{ item | suffix }} {{ item | dirname }}", "file.ts src/deep"),
        ("{{ steps.find.output | join(', ') }}", "a b.ts, $(rm -rf)"),
        (
            "{% for one in steps.find.output %}\n- {{ one }}\n{% endfor %}",
            "- a b.ts\n- $(rm -rf)\n",
        ),
        ("{% if steps.find.exit_code %}failed{% else %}fine{% endif %}", "failed"),
        ("{{ vars.nothing | default('none') }}", "none"),
        ("{{ item ~ 1 }} {{ item.upper()[:3] }}", "src/deep/file.ts1 SRC"),
        ("{{ {'a': [1, 1.5, none]} }}", '{"a": [1, 1.5, null]}'),
    ],
)
def test_texts_are_filled_in(template: str, wanted: str) -> None:
    """A text goes in as it is, everything else as JSON."""
    assert render(template, VALUES) == wanted


def test_each_argument_stays_one() -> None:
    """Whatever is in a value, it is one argument; a list alone is one argument an item."""
    words = ("ls", "--", "{{ steps.find.output }}", "x{{ item }}", "{{ steps.find.items }}")
    assert render_words(words, VALUES) == (
        "ls",
        "--",
        "a b.ts",
        "$(rm -rf)",
        "xsrc/deep/file.ts",
        "3",
    )


def test_values_keep_their_type() -> None:
    """A text of a table that is only an expression is what that is."""
    table = {"files": "{{ steps.find.output }}", "n": "{{ 1 + 1 }}", "t": "n={{ 1 }}", "b": True}
    wanted = {"files": ["a b.ts", "$(rm -rf)"], "n": 2, "t": "n=1", "b": True}
    assert render_value(table, VALUES) == wanted


def test_expressions_give_data() -> None:
    """Conditions hold when what they give is not empty; items are a list."""
    assert evaluate("steps.find.output", VALUES) == ["a b.ts", "$(rm -rf)"]
    assert holds("steps.find.exit_code != 0 and 'b' in item ~ 'b'", VALUES)
    assert not holds("vars.nothing is defined", VALUES)
    assert items_of("range(3)", VALUES) == (0, 1, 2)
    assert items_of("{'a': 1, 'b': (2, 3)}.items()", VALUES) == (["a", 1], ["b", [2, 3]])
    assert items_of(("a", "{{ item }}"), VALUES) == ("a", "src/deep/file.ts")


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{{ 'a' * 10**9 }}", "`*` of a text and a number"),
        ("{{ [0] * 10**9 }}", "`*` of a list and a number"),
        ("{{ 10 ** 5000 }}", "a number that is too large"),
        ("{{ '%1000000000d' % 1 }}", "`%` of a text and a number"),
        ("{{ range(10**9) | list }}", "something that is too large"),
        (
            "{% for a in vars.many %}{% for b in vars.many %}{% endfor %}{% endfor %}",
            "too expensive",
        ),
        ("{{ vars.many | select('in', vars.many) | list }}", "too expensive"),
        ("{% for a in vars.many %}{{ a in vars.many }}{% endfor %}", "too expensive"),
        ("{% for a in vars.many %}{{ vars.many[1:] | length }}{% endfor %}", "too expensive"),
        ("{{ vars.many ~ vars.many ~ vars.many ~ vars.many ~ vars.many }}", "more than 4,194,304"),
        ("{{ [vars.many, vars.many, vars.many, vars.many, vars.many] }}", "more than 4,194,304"),
        ("{{ (vars.many | join).replace('1', vars.many | join) }}", "cannot be called"),
        ("{{ vars.many | join | replace('1', vars.many | join) }}", "more than 4,194,304"),
        ("{{ ''.__class__.__mro__ }}", "no `__class__`"),
        ("{{ vars.__init__.__globals__ }}", "no `__init__`"),
        ("{{ vars.glob.format }}", "no `format`"),
        ("{{ lipsum() }}", "cannot be called"),
        ("{{ self }}", "an unsupported statement"),
        ("{{ __budget }}", "an unsupported statement"),
        ("{% set a = 1 %}", "an unsupported statement: `assign`"),
        ("{% include 'x' %}", "an unsupported statement: `include`"),
        ("{% macro m() %}{% endmacro %}", "an unsupported statement: `macro`"),
        ("{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}", "nested too deeply"),
        ("{{ " + "-" * 5000 + "1 }}", "nested too deeply"),
        ("{{ 1" + " + 1" * 5000 + " }}", "nested too deeply"),
        ("{{ 1 / 0 }}", "divides by zero"),
        ("{{ 1 + 'a' }}", "`+` of a number and a text"),
        ("{{ vars.nothing }}", "no `nothing` in a table"),
        ("{{ steps.none.output }}", "no `none` in a table"),
        ("{{ vars.glob | nofilter }}", "the filter `nofilter`, which is not there"),
        ("{{ vars.glob is nice }}", "the test `nice`, which is not there"),
        ("{{ vars.many | sum }}", "adds numbers only"),
        ("{% if x %}", "is no template"),
        ("x" * 200_001 + "{{ 1 }}", "longer than 200,000"),
    ],
)
def test_what_is_too_much_or_not_there_is_refused(template: str, message: str) -> None:
    """A hostile template ends soon, with a sentence, and never gets at anything."""
    with pytest.raises(TemplateError) as caught:
        render(template, VALUES)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("{{ vars.glob }}", "an expression already"),
        ("1 2", "continues after its end"),
        ("vars.glob = 'a'", "`==` compares"),
        ("vars.", "is no expression"),
        ("vars.nothing", "no `nothing`"),
        ("vars.glob.upper", "is a method"),
    ],
)
def test_a_wrong_expression_is_refused(expression: str, message: str) -> None:
    """Expressions have no braces, one value, and only what is there."""
    with pytest.raises(TemplateError) as caught:
        evaluate(expression, VALUES)
    assert message in f"{caught.value} {caught.value.hint}"


def test_what_is_no_list_has_no_items() -> None:
    """A text is not gone through letter by letter."""
    with pytest.raises(TemplateError, match="is no list of items"):
        items_of("vars.glob", VALUES)


def test_no_argument_has_a_nul() -> None:
    """It is refused before a process would be started with half of it."""
    with pytest.raises(TemplateError, match="NUL"):
        render_words(("echo", "{{ item }}"), {"item": "a\0b"})
