"""The deadline of a runtime that may be cut off: what runs then is killed, and nothing starts."""

import asyncio
import signal

from steersman.ports.process.host import ProcessHost
from steersman.ports.process.process import ProcessResult
from steersman.ports.process.wire import deadline_clock


def test_a_deadline_that_passes_kills_what_runs(hosting, mark, hostile):
    """Nothing of a hostile command is left, nothing starts after it, and all is well with a new one."""

    async def scenario(host: ProcessHost) -> tuple[ProcessResult, list[int], ProcessResult, str]:
        process = await hosting.ready(host, mark.spec(*hostile))
        host.set_deadline(deadline_clock() + 0.05)
        result, left = await process.wait(), mark.pids()
        refused = await (await host.spawn(mark.spec("sh", "-c", "echo late"))).wait()
        host.set_deadline(deadline_clock() + 600)
        again = await (await host.spawn(mark.spec("sh", "-c", "echo again"))).wait()
        return result, left, refused, again.head.decode()

    result, left, refused, again = hosting(scenario)

    assert left == []
    assert (result.status, result.survivors) == ("lost", ())
    assert (refused.status, refused.head) == ("lost", b"")
    assert again == "again\n"


def test_a_deadline_that_is_moved_on_kills_nothing(hosting, mark):
    """A command runs past a deadline that was moved in time, or taken away."""

    async def scenario(host: ProcessHost) -> list[ProcessResult]:
        host.set_deadline(deadline_clock() + 1.0)
        process = await host.spawn(mark.spec("sleep", "1.5"))
        host.set_deadline(deadline_clock() + 600)
        other = await host.spawn(mark.spec("sleep", "1.5"))
        host.set_deadline(None)
        return list(await asyncio.gather(process.wait(), other.wait()))

    assert [result.status for result in hosting(scenario)] == ["exited", "exited"]


def test_a_stopped_runtime_leaves_nothing_past_its_deadline(mark):
    """The tools of a runtime that a signal has stopped are gone, although that cannot end them."""
    with mark.runtime("sh", "-c", "echo ready; sleep 600", seconds=2.0) as runtime:
        runtime.send_signal(signal.SIGSTOP)
        try:
            assert mark.until_gone(30.0) == []
        finally:
            runtime.kill()
