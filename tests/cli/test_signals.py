"""Signals that ask the program to leave."""

import os
import signal
import sys
import threading

import pytest
from prompt_toolkit.application import Application
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput
from support.executed import executed
from support.patience import seconds

from steersman.cli.signals import (
    PromptExit,
    SignalExit,
    leave_on_signals,
    leave_through,
    waiting,
)

SCRIPT = """
import signal, threading
from steersman.cli.signals import SignalExit, leave_on_signals, waiting

class Thrown:
    def __del__(self):
        signal.raise_signal(signal.SIGTERM)

with leave_on_signals(), waiting():
    Thrown()
    print("lost")
    threading.Event().wait(10)
    print("not asked again")
"""


def test_a_signal_in_a_finalizer_is_not_lost() -> None:
    """One that comes while the interpreter throws something away is raised a moment later."""
    ran = executed((sys.executable, "-c", SCRIPT))
    assert (ran.returncode, ran.stdout, ran.stderr) == (143, "lost\n", "")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)])
def test_a_signal_before_the_prompt_is_open_ends_it(number: int, code: int) -> None:
    """It does not hit the loop that is being made, and the prompt asks nobody anything."""
    with create_pipe_input() as keys, leave_on_signals():
        app: Application[int] = Application(input=keys, output=DummyOutput())
        prompt_exit = PromptExit(app, lambda: app.exit(result=0))
        with leave_through(prompt_exit.leave):
            os.kill(os.getpid(), number)
            assert app.run(prompt_exit.opened, handle_sigint=False) == 0
        assert prompt_exit.exit_code == code


def test_a_signal_is_raised_where_the_main_thread_waits() -> None:
    """Not between the taking of a lock and the block that gives it back."""
    reached: list[str] = []

    def work() -> None:
        with leave_on_signals():
            signal.raise_signal(signal.SIGINT)
            reached.append("past the signal")
            with waiting():
                reached.append("in the wait")

    with pytest.raises(SignalExit) as raised:
        work()
    assert (reached, raised.value.exit_code) == (["past the signal"], 130)


def test_a_signal_is_raised_in_time_where_nobody_said_that_it_waits() -> None:
    """A main thread that waits for another program is not waited for."""

    def work() -> None:
        with leave_on_signals():
            signal.raise_signal(signal.SIGTERM)
            threading.Event().wait(seconds(10))
            pytest.fail("it waited to the end")

    with pytest.raises(SignalExit):
        work()


def test_a_signal_that_came_before_goes_through_the_way() -> None:
    """A prompt that opens after the signal is told of it."""
    taken: list[int] = []

    def way(signal_exit: SignalExit) -> bool:
        taken.append(signal_exit.exit_code)
        return True

    with leave_on_signals():
        signal.raise_signal(signal.SIGTERM)
        with leave_through(way):
            assert taken == [143]
