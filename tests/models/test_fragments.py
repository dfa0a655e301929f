"""A part of a file goes where it belongs."""

from steersman.ports.models.fragments import merged, statements_of

FILE = '''"""Pages."""

from __future__ import annotations

import math

SIZE = 10


def count(total, size):
    """Return how many pages there are."""
    return total // size + 1


@math.nothing
def page(items, number, size):
    """Return a page."""
    begin = (number - 1) * size
    return items[begin : begin + size]
'''


def test_a_function_replaces_the_one_of_its_name() -> None:
    """The rest of the file stays as it is."""
    fixed = "def count(total, size):\n    return -(-total // size)\n"
    whole = merged("pages.py", FILE, fixed)
    assert "-(-total // size)" in whole
    assert "def page" in whole
    assert "@math.nothing\n" in whole
    assert "// size + 1" not in whole


def test_imports_and_new_functions_are_added() -> None:
    """Imports go behind the docstring and `__future__`, where they have to be."""
    helper = "def helper():\n    return 1\n"
    part = f"import sys\n\n\ndef count(total, size):\n    return helper()\n\n\n{helper}"
    whole = merged("pages.py", FILE, part)
    compile(whole, "pages.py", "exec")
    assert whole.index("annotations") < whole.index("import sys") < whole.index("SIZE")
    assert whole.endswith(helper)


def test_a_new_function_alone_leaves_the_others() -> None:
    """It comes behind them, though none of them is in what was written."""
    helper = "def helper():\n    return 1\n"
    whole = merged("pages.py", FILE, helper)
    assert whole.startswith(FILE.rstrip())
    assert whole.endswith(helper)


def test_a_new_class_leaves_the_only_other_one() -> None:
    """However short the file is; one that is the same under another name takes its place."""
    before = 'class OldError(Exception):\n    """No such item."""\n'
    new = 'class NewError(Exception):\n    """The cart is empty."""\n'
    assert merged("errors.py", before, new) == f"{before}\n\n{new}"
    renamed = before.replace("OldError", "NewError")
    assert merged("errors.py", before, renamed) == renamed


def test_what_is_a_whole_file_stays_as_it_was_written() -> None:
    """All definitions are there, or nearly all words, or it is no Python."""
    renamed = FILE.replace("def count", "def count_pages")
    assert merged("pages.py", FILE, renamed) == renamed
    assert merged("pages.py", "", "x = 1\n") == "x = 1\n"
    assert merged("notes.txt", FILE, "x\n") == "x\n"
    assert merged("pages.py", FILE, "print(1)\n") == "print(1)\n"
    assert merged("pages.py", FILE, "def count(:\n") == "def count(:\n"


def test_a_check_of_several_lines_is_one() -> None:
    """Else a model would read a half of it; a text of several lines stays as it is."""
    tests = (
        'def test_f():\n    """F\n    adds."""\n    assert f(\n        1,\n        2,\n    ) == 3\n'
    )
    said = [line for line in statements_of(tests) if line]
    assert said == ["def test_f():", '"""F', 'adds."""', "assert f(1, 2) == 3"]
