"""What is renamed is known from the request, and nothing else of a file changes."""

import pytest

from steersman.ports.models.failure_text import has_failed, has_passed, tail_of
from steersman.ports.models.renames import only_renamed, renaming

FILES = {
    "a.css": ".btn {\n}\n.btn-big {\n  padding: 1px;\n}\n",
    "rules.py": "MAX_BOOKS = 5\nMAX_WEEKS = 4\n",
    "desk.py": "import rules\n# MAX_BOOKS is known outside\nprint(rules.MAX_BOOKS)\n",
    "stock.csv": "item,qty\nspade,4\n",
    "README.md": "Call 555-0142. The timeout is 30.\n",
    "long.log": None,
}


@pytest.mark.parametrize(
    ("request_", "names"),
    [
        ("rename MAX_BOOKS to LOAN_LIMIT in all the python files", ("MAX_BOOKS", "LOAN_LIMIT")),
        ("please rename `MAX_BOOKS` to `LOAN_LIMIT`", ("MAX_BOOKS", "LOAN_LIMIT")),
        ("rename the css class btn-big to button in the css", ("btn-big", "button")),
        (
            "the column qty in stock.csv should be called quantity. change the csv, and the scripts "
            "that use it",
            ("qty", "quantity"),
        ),
        (
            "our phone number is now 555-0199 instead of 555-0142, change it everywhere",
            ("555-0142", "555-0199"),
        ),
    ],
)
def test_names_are_read(request_: str, names: tuple[str, str]) -> None:
    """Where a request is about a name and nothing else."""
    assert renaming(request_, FILES) == names


@pytest.mark.parametrize(
    "request_",
    [
        "rename MAX_BOOKS to LOAN_LIMIT and print it in main.py",  # more is asked for
        "rename rules.py to limits.py and use it",  # a file
        "rename MAX_BOOKS to MAX_WEEKS",  # it is there already
        "rename MIN_BOOKS to LOAN_LIMIT",  # it is not there
        "set the timeout to 90",
        "the timeout is now 90 instead of timeout",  # a value in place of a name
        "use logging instead of print",
    ],
)
def test_other_requests_name_nothing(request_: str) -> None:
    """What a line may become is not known then."""
    assert renaming(request_, FILES) is None


@pytest.mark.parametrize(
    ("path", "said", "kept"),
    [
        ("rules.py", "LOAN_LIMIT = 5\n", "LOAN_LIMIT = 5\nMAX_WEEKS = 4\n"),
        (
            "desk.py",  # a line that was left as it was stays
            "import rules\n# MAX_BOOKS is known outside\n\nprint(rules.LOAN_LIMIT)\n",
            "import rules\n# MAX_BOOKS is known outside\nprint(rules.LOAN_LIMIT)\n",
        ),
        ("rules.py", "LOAN_LIMIT = 5\nMAX_WEEKS = 4", "LOAN_LIMIT = 5\nMAX_WEEKS = 4"),
    ],
)
def test_only_the_name_changes(path: str, said: str, kept: str) -> None:
    """Lines that a model lost are there, and those that it changed besides are as they were."""
    assert only_renamed(path, FILES[path] or "", said, ("MAX_BOOKS", "LOAN_LIMIT")) == kept


def test_a_dash_joins_words_in_styles() -> None:
    """The longer name is another one."""
    css = FILES["a.css"] or ""
    assert only_renamed("a.css", css, "x", ("btn", "button")) == css.replace(".btn {", ".button {")


@pytest.mark.parametrize(
    ("result", "end"),
    [
        ("boom\n[exit code 1]\n[it ran in a sandbox]", (False, True)),
        ("boom\n[exit code 0]\n[what it left running was stopped]", (True, False)),
        ("[exit code 0]\n[exit code 1]", (False, True)),
        ("[exit code -9: ended by signal 9]", (False, False)),
        ("[timed out after 3 s and was stopped]", (False, False)),
    ],
)
def test_notes_behind_an_exit_code_do_not_hide_it(result: str, end: tuple[bool, bool]) -> None:
    """A command that failed in a sandbox has failed, and the note is no part of what it printed."""
    assert (has_passed(result), has_failed(result)) == end
    assert "sandbox" not in tail_of(result)
