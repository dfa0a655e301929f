"""What failing tests printed, in short."""

import pytest

from steersman.ports.models.failure_text import cases_in, errors_in, has_failed, has_passed, tail_of

UNITTEST = """\
======================================================================
FAIL: test_b (test_pages.PagesTest.test_b)
----------------------------------------------------------------------
Traceback (most recent call last):
  File "/home/ann/shop/test_pages.py", line 10, in test_b
    self.assertEqual(page_count(10, 5), 2)
    ~~~~~~~~~~~~~~~~^^^^^^^^^^^^^^^^^^^^^^
  File "/home/ann/shop/pages.py", line 2, in page_count
    return int("x")
ValueError: invalid literal

----------------------------------------------------------------------
Ran 3 tests in 0.001s

FAILED (errors=1)
[exit code 1]"""
PYTEST = """\
F                                                                        [100%]
____________________________________ test_a ____________________________________

    def test_a():
>       assert page_count(10, 5) == 2
               ^^^

test_pages.py:6:
    def page_count(total, size):
>       raise ValueError("x")
E       ValueError: x

pages.py:6: ValueError
[exit code 1]"""


@pytest.mark.parametrize(
    ("printed", "cases"),
    [
        (UNITTEST, "self.assertEqual(page_count(10, 5), 2)\nValueError: invalid literal"),
        (PYTEST, "assert page_count(10, 5) == 2\nE       ValueError: x"),
        ("burst is 10\n[exit code 1]", "burst is 10"),
    ],
)
def test_a_check_stands_with_its_error(printed: str, cases: str) -> None:
    """The line of the test, not the one deep in the code; the same one is told once."""
    assert cases_in([printed, printed]) == cases


def test_what_only_frames_is_left_out() -> None:
    """Lines, tracebacks and folders: the same failure is then the same text in every folder."""
    assert tail_of(UNITTEST) == (
        "FAIL: test_b (test_pages.PagesTest.test_b)\n"
        "  test_pages.py, line 10, in test_b\n"
        "    self.assertEqual(page_count(10, 5), 2)\n"
        "  pages.py, line 2, in page_count\n"
        '    return int("x")\n'
        "ValueError: invalid literal"
    )
    assert tail_of("(no output)\n[exit code 1]") == ""


@pytest.mark.parametrize(
    ("result", "how"),
    [
        ("fine\n[exit code 0]", (True, False)),
        ("[exit code 2]", (False, True)),
        ("[timed out]\n[exit code -15]", (False, False)),
        ("[shell was not run: the user said no]", (False, False)),
        (None, (False, False)),
    ],
)
def test_only_what_ended_by_itself_shows_something(
    result: str | None, how: tuple[bool, bool]
) -> None:
    """A command that was refused, or ended at its limit, has neither passed nor failed."""
    assert (has_passed(result), has_failed(result)) == how


def test_a_script_that_waits_for_a_person_is_told_of_its_arguments() -> None:
    """In every form in which a failure is told."""
    printed = "Name: Traceback\nEOFError: EOF when reading a line\n[exit code 1]"
    for told in (tail_of(printed), cases_in([printed]), errors_in(printed)):
        assert "EOF when reading a line: nobody types; what is given is in sys.argv[1:]" in told
