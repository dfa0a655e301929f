"""Lines from standard input: split right, and a signal is never slept through."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from steersman.cli.streams import printers, typed_lines


class Alarm(Exception):
    """What the signal's handler raises."""


@contextmanager
def typing(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Make a pipe the standard input; yields its writing end."""
    reader, writer = os.pipe()
    with os.fdopen(reader) as stream:
        monkeypatch.setattr("sys.stdin", stream)
        yield writer


@pytest.mark.parametrize(
    ("typed", "lines"),
    [
        (b"", []),
        (b"one\ntwo\n", ["one", "two"]),
        (b"one\r\n\r\ntwo", ["one", "", "two"]),
        (b"odd \xff byte\n", ["odd \ufffd byte"]),
        ("köln\n".encode(), ["köln"]),
        (b"\xef\xbb\xbfone\r\n\xef\xbb\xbftwo\n", ["one", "\ufefftwo"]),
    ],
)
def test_lines_are_split(monkeypatch: pytest.MonkeyPatch, typed: bytes, lines: list[str]) -> None:
    """Lines lose their ends, the last one needs none, and odd bytes are replaced."""
    with typing(monkeypatch) as keyboard:
        os.write(keyboard, typed)
        os.close(keyboard)
        assert list(typed_lines()) == lines


def test_a_line_longer_than_the_pipe_comes_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line of a megabyte, written in pieces, is one line."""
    with typing(monkeypatch) as keyboard:

        def write() -> None:
            with os.fdopen(keyboard, "wb") as stream:
                stream.write(b"x" * 1_000_000 + b"\nlast")

        writing = threading.Thread(target=write)
        writing.start()
        assert [len(line) for line in typed_lines()] == [1_000_000, 4]
        writing.join()


def test_a_signal_is_not_slept_through(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the handler raises ends the wait for a line."""

    def on_alarm(*_: object) -> None:
        raise Alarm

    before = signal.signal(signal.SIGUSR1, on_alarm)
    try:
        with typing(monkeypatch) as keyboard:
            lines = typed_lines()
            os.write(keyboard, b"one\n")
            assert next(lines) == "one"
            late = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGUSR1))
            late.start()
            with pytest.raises(Alarm):
                next(lines)
            lines.close()
            os.close(keyboard)
    finally:
        signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize(("error", "is_one"), [("out", True), ("error", False)])
def test_what_goes_to_one_place_is_printed_in_order(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: str, is_one: bool
) -> None:
    """Where answer and notices go to one file, one thread writes both."""
    with ExitStack() as stack:
        for stream, name in (("stdout", "out"), ("stderr", error)):
            file = stack.enter_context((tmp_path / name).open("a"))
            monkeypatch.setattr(f"sys.{stream}", file)
        out, err = printers()
        for number in range(100):
            (err if number % 2 else out).write(f"{number}\n")
        out.close()
        err.close()
    assert (out is err) is is_one
    if is_one:
        assert (tmp_path / "out").read_text().split() == [str(number) for number in range(100)]
