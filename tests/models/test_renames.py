"""What is renamed is known from the request, and nothing else of a file changes."""

import pytest

from steersman.ports.models.failure_text import has_failed, has_passed, tail_of
from steersman.ports.models.renames import after_move, moving, only_renamed, renaming, with_name

FILES = {
    "a.css": ".btn {\n}\n.btn-big {\n  padding: 1px;\n}\n",
    "rules.py": "MAX_BOOKS = 5\nMAX_WEEKS = 4\n",
    "desk.py": "import rules\n# MAX_BOOKS is known outside\nprint(rules.MAX_BOOKS)\n",
    "stock.csv": "item,qty\nspade,4\n",
    "README.md": "Call 555-0142. The timeout is 30. Come to the Harvest Fest.\n",
    "run.sh": "--silent) colour=#336699\ntar -c /home/tom/bees/weights\n",
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
            "the Harvest Fest is now called Autumn Fair, please change it in all the files",
            ("Harvest Fest", "Autumn Fair"),
        ),
        ("--silent should be called --quiet everywhere", ("--silent", "--quiet")),
        ("replace the colour #336699 with #2a6f4e in the css files", ("#336699", "#2a6f4e")),
        (
            "our phone number is now 555-0199 instead of 555-0142, change it everywhere",
            ("555-0142", "555-0199"),
        ),
        (
            "Please rename the constant MAX_BOOKS of rules to LOAN_LIMIT, including all the places where "
            "it gets used.",
            ("MAX_BOOKS", "LOAN_LIMIT"),
        ),
        (
            "i misspelled item as spade in the csv of my stock, can you correct this?",
            ("spade", "item"),  # which is there already
        ),
        (
            "Our green #336699 is replaced by the blue #1f6f8b. Change it in both scripts, please.",
            ("#336699", "#1f6f8b"),
        ),
        ("change the colour #336699 to #1f6f8b", ("#336699", "#1f6f8b")),
        (
            "the fest is now called Autumn Fair instead of Harvest Fest",
            ("Harvest Fest", "Autumn Fair"),
        ),
        (
            "the data moved from /home/tom/bees to /srv/bees, change the paths in all the files",
            ("/home/tom/bees", "/srv/bees"),
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
        "rename MAX_BOOKS to LOAN_LIMIT and import it in desk.py",
        "rename MAX_BOOKS to LOAN_LIMIT and call it in desk",
    ],
)
def test_other_requests_name_nothing(request_: str) -> None:
    """What a line may become is not known then."""
    assert renaming(request_, FILES) is None


def test_a_colour_is_one_in_large_letters_too() -> None:
    """As styles have it."""
    names = ("#c0392b", "#1f6f8b")
    assert with_name("a.css", "a: #C0392B; b: #c0392bff", names) == "a: #1f6f8b; b: #c0392bff"


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


@pytest.mark.parametrize(
    ("request_", "paths"),
    [
        ("rename rules.py to limits.py and fix the imports", ("rules.py", "limits.py")),
        ("please move the file `util.py` into lib/", ("app/util.py", "lib/util.py")),
        ("pls rename util.py to tools.py. the readme too", ("app/util.py", "app/tools.py")),
        ("move load from rules.py to desk2.py", None),
        ("rename rules.py to limits.py and print its size", None),
        ("rename rules.py to desk.py", None),
        ("rename rules.py to ../limits.py", None),
        ("rename other.py to limits.py", None),
    ],
)
def test_a_file_that_is_only_wanted_elsewhere(request_: str, paths: tuple[str, str] | None) -> None:
    """Its path is in the folder, the new one is not, and nothing else is asked for."""
    assert moving(request_, {**FILES, "app/util.py": "x = 1\n"}) == paths


@pytest.mark.parametrize(
    ("path", "text", "moved"),
    [
        ("a.py", "import util\nutil.f(my.util.x)\n", "import tool\ntool.f(my.util.x)\n"),
        ("a.py", "from util import f\nutil.f()\n", "from tool import f\nutil.f()\n"),
        ("a.py", "from .util import f\n", "from .tool import f\n"),
        ("a.py", "from . import b, util\nutil.f()\n", "from . import b, tool\ntool.f()\n"),
        ("a.py", "from b import util\n", "from b import util\n"),
        ("a.py", "util = []\nutil.sort()\n", "util = []\nutil.sort()\n"),
        ("run.sh", "python util.py my-util.py\n", "python tool.py my-util.py\n"),
    ],
)
def test_what_names_a_moved_file_names_the_new_one(path: str, text: str, moved: str) -> None:
    """Imports of a Python module as well, and what is used of it, but no other thing of its name."""
    assert after_move(path, text, "util.py", "tool.py") == moved


def test_a_module_of_a_package_moves_with_its_imports() -> None:
    """Within its package, and into another one."""
    text = "import app.util\nfrom app import util\nfrom app.util import f\napp.util.f()\n"
    within = after_move("a.py", text, "app/util.py", "app/tool.py")
    assert within == text.replace("util", "tool")
    other = after_move("a.py", "from app.util import f\n", "app/util.py", "lib/util.py")
    assert other == "from lib.util import f\n"


def test_a_word_like_others_stays_in_a_document() -> None:
    """There it may be meant as such; anything else is a name everywhere."""
    assert with_name("a.md", "the qty of MAX_N\n", ("qty", "count")) == "the qty of MAX_N\n"
    assert with_name("a.md", "the qty of MAX_N\n", ("MAX_N", "TOP")) == "the qty of TOP\n"
    assert with_name("a.py", "qty = 1\n", ("qty", "count")) == "count = 1\n"


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
