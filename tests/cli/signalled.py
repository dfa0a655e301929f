"""A process that signals itself while it may be asked to leave: `signalled.py WHERE NUMBER`."""

import asyncio
import signal
import sys

__all__: list[str] = []


def outside(number: int) -> None:
    """Get the signal where no loop runs."""
    signal.raise_signal(number)


def in_callback(number: int) -> None:
    """Get it while a loop runs a callback, as while the prompt draws itself."""

    async def rest() -> None:
        asyncio.get_running_loop().call_soon(signal.raise_signal, number)
        await asyncio.Event().wait()

    asyncio.run(rest())


def in_task(number: int) -> None:
    """Get it while another task runs than the one that is waited for."""

    async def get() -> None:
        signal.raise_signal(number)

    async def rest() -> None:
        task = asyncio.create_task(get())
        await asyncio.Event().wait()
        await task

    asyncio.run(rest())


if __name__ == "__main__":
    from steersman.cli.signals import SignalExit, leave_on_signals

    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        with leave_on_signals():
            globals()[sys.argv[1]](int(sys.argv[2]))
    except SignalExit as signal_exit:
        print(signal_exit.exit_code)
