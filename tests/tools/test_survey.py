"""What a small model is shown of a folder."""

import subprocess
from pathlib import Path

import pytest

from steersman.ports.tools.survey import TESTS, Found, command_of_tests, files_in, is_example, shown

LOG = "".join(f"10:{n:02d} {'ERROR' if n % 7 == 3 else 'INFO'} request r{n}\n" for n in range(90))


def found(**files: str) -> list[Found]:
    """Make files; `__` stands for a dot, and `_0_` for a slash."""
    names = {name: name.replace("_0_", "/").replace("__", ".") for name in files}
    return [Found(path=names[name], text=text) for name, text in files.items()]


def test_small_files_are_shown_whole() -> None:
    """Each with its path, in a fence that its content cannot close."""
    text = shown("what is in it?", found(a__txt="hello\n", b__md="```sh\nls\n```\n"))
    assert text == "a.txt\n```\nhello\n```\n\nb.md\n````\n```sh\nls\n```\n````"
    assert shown("hi", []) == "The folder is empty."


def test_of_a_long_file_its_beginning_and_what_is_asked_about() -> None:
    """The lines with words of the request are counted, and shown if they are few."""
    text = shown("how many lines of server.log contain ERROR? and r77", found(server__log=LOG * 3))
    assert text.endswith(
        "```\n\n(`ERROR` is in 39 of the 270 lines of server.log.)\n"
        "(`r77` is in 3 of the 270 lines of server.log.)"
    )
    assert "line 78: 10:77 INFO request r77" in text
    assert "[… 255 lines more]" in text
    assert len(text) < 2000


def test_lines_are_counted_where_a_number_is_asked_for() -> None:
    """Also of a file that is shown whole: a small model reads it, and does not count."""
    files = found(guests__csv="name,meal\nana,fish\nbo,veg\neli,fish\n")
    counted = shown("how many in guests.csv want fish?", files)
    assert counted.endswith("```\n\n(`fish` is in 2 of the 4 lines of guests.csv.)")
    assert shown("who in guests.csv wants fish?", files).endswith("```")


def test_files_with_a_dot_are_left_out_but_for_those_that_people_ask_about(tmp_path: Path) -> None:
    """The settings of a build are shown; caches, keys and git's own files are not."""
    for name in (".github/workflows/ci.yml", ".gitignore", ".env", ".cache/a.txt", "a/.npmrc"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{name}\n")
    assert [file.path for file in files_in(tmp_path, [], lambda: None)] == [
        ".github/workflows/ci.yml",
        ".gitignore",
    ]


def test_what_is_named_comes_first() -> None:
    """Of a folder that is larger than the room the named file is there, and the others by name."""
    files = found(**{f"part{n}__py": f"value = {n}\n" * 70 for n in range(30)})
    text = shown("double the value in part17.py", files)
    assert "part17.py\n```\nvalue = 17\n" in text
    assert text.startswith("Other files: part")
    assert len(text) < 6000


def test_of_a_large_folder_only_what_is_asked_about_is_shown() -> None:
    """A file that is named alone; what has the words; the readme, where nothing is named."""
    files = [Found(path=f"docs/p{n}.md", text=f"See notes.txt, part {n}.") for n in range(60)]
    files += [
        Found(path="README.md", text="Run make."),
        Found(path="notes.txt", text="milk"),
        Found(path="src/notes.py", text="def upload_limit(): ..."),
    ]
    shows = {
        "what is in notes.txt?": ["notes.txt"],
        "where is upload_limit?": ["src/notes.py"],
        "how do i run this?": ["README.md"],
    }
    for request, paths in shows.items():
        text = shown(request, files)
        assert [path for path in (file.path for file in files) if f"{path}\n```" in text] == paths
        assert text.startswith("Other files: docs/, ")
        assert f": {len(files) - 1} in all" in text.split("\n")[0]


@pytest.mark.parametrize(
    ("files", "command"),
    [
        ({}, ""),
        ({"a__py": "x = 1"}, ""),
        ({"test_a__py": "import unittest"}, "python3 -B -m unittest -q"),
        (
            {"tests_0_test_a__py": "import unittest"},
            "python3 -B -m unittest discover -s tests -t . -q",
        ),
        ({"Makefile": "test:\n\ttrue\n", "test_a__py": ""}, "make test"),
        ({"test__sh": "true"}, "sh test.sh"),
        ({"package__json": "[]"}, ""),
    ],
)
def test_the_command_of_the_tests(files: dict[str, str], command: str) -> None:
    """As the folder's own files say it."""
    assert command_of_tests(found(**files)) == command


def test_a_command_that_the_request_names() -> None:
    """It is how the person will look whether it was done."""
    files = found(check__py="", test_a__py="import unittest")
    request = "raise the limit. python3 check.py has to say ok"
    assert command_of_tests(files, request) == "python3 check.py"
    assert command_of_tests(files, "python3 other.py is slow").startswith("python3 -B -m unittest")


@pytest.mark.parametrize(
    ("request_", "fails"),
    [
        ('add initials(name) to names.py. initials("ana gil") should return "A.G."', False),
        ("write names.py, initials('ana gil') -> 'A.G.' and initials('bo') == 'B'", True),
    ],
)
def test_an_example_of_the_request_is_a_check(request_: str, fails: bool, tmp_path: Path) -> None:
    """Where there are no tests; it says what the example gave."""
    (tmp_path / "names.py").write_text("def initials(name):\n    return 'A.G.'\n")
    command = command_of_tests(found(names__py="x"), request_)
    ran = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True)
    said = "initials('bo') should be 'B', and is 'A.G.'"
    assert (ran.returncode != 0, said in ran.stderr) == (fails, fails)


@pytest.mark.parametrize(
    ("request_", "command"),
    [
        ("write age.py. called like python3 age.py 2001-05-17 -v (a day), it says the age", "-v"),
        ("a script biggest.sh, e.g. `bash biggest.sh boxes`", "boxes"),
        ("a script biggest.sh for a folder: bash biggest.sh boxes.", "boxes"),
        ("i need a.py: sh a.py is fine", ""),
        ("please run python3 build.py 3 again", ""),
    ],
)
def test_a_call_that_a_request_gives_is_a_check(request_: str, command: str) -> None:
    """With what are values or files that are there; of a script that is wanted, so named twice."""
    made = command_of_tests([Found(path="boxes/a.txt", text="x")], request_)
    assert made.endswith(command) if command else made == ""
    assert is_example(made) is bool(command)


@pytest.mark.parametrize(
    "request_", ["f(x) returns 1 in a.py", "f(1) is 2", "f(1) is 2 in a.py and b.py", "run a.py"]
)
def test_what_is_no_example_is_no_check(request_: str) -> None:
    """It names no value, no file, or several."""
    assert command_of_tests(found(a__py="x"), request_) == ""


def test_the_tool_hides_what_the_rules_hide(bench) -> None:
    """A denied file and hidden folders are not shown; the tests' command comes last."""
    (bench.folder / ".git").mkdir()
    (bench.folder / ".git" / "config").write_text("secret")
    (bench.folder / "keys.txt").write_text("secret")
    (bench.folder / "test_a.py").write_text("import unittest\n")
    bench.about = {"hidden": (("keys.*", True),)}
    result = bench.call("survey", request="what is here?")
    assert result.status == "ok"
    assert "secret" not in result.text
    assert result.text.endswith(f"{TESTS}python3 -B -m unittest -q")
