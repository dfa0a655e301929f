"""What a command gets, what it prints, how it ends."""

import asyncio
import os
import re
import signal
import stat
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from steersman.machines.errors import ToolError
from steersman.ports.process.host import ProcessHost
from steersman.ports.process.process import ProcessResult, ProcessSpec
from steersman.ports.process.running import Trickle

MEGABYTE = 1024 * 1024


def memory() -> int:
    """Resident memory of this process, in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_result(hosting, mark):
    """Output of both streams, stdin, folder, environment and exit code are the command's own."""
    script = "cat; pwd; echo $MARK >&2; exit 3"
    result = hosting.result(mark.spec("sh", "-c", script, cwd=Path("/tmp"), stdin=b"given\n"))

    text = f"given\n/tmp\n{mark.word}\n".encode()
    assert result == ProcessResult(
        status="exited", exit_code=3, head=text, tail=b"", total=len(text)
    )


def test_large_stdin(hosting, mark):
    """Stdin may be larger than any pipe."""
    script = "import sys; print(len(sys.stdin.buffer.read()))"
    result = hosting.result(mark.spec(sys.executable, "-c", script, stdin=b"x" * 3_000_000))

    assert result.head == b"3000000\n"


def test_no_stdin(hosting, mark):
    """Without stdin a command reads the end of file at once."""
    assert hosting.result(mark.spec("sh", "-c", "cat; echo end")).head == b"end\n"


def ignored_here() -> int:
    """The mask of what the tests inherited as ignored, as from `&`, and a command inherits in turn."""
    is_ignored = signal.getsignal(signal.SIGQUIT) == signal.SIG_IGN
    return 1 << signal.SIGQUIT - 1 if is_ignored else 0


def test_surroundings(hosting, mark):
    """A command has its own session, three descriptors, default signals; memory takes it first."""
    script = """
import os, signal
print(os.getsid(0) == os.getpid(), sorted(map(int, os.listdir('/proc/self/fd')))[:-1])
print(open('/proc/self/oom_score_adj').read().strip(), signal.getsignal(signal.SIGTERM).name)
masks = dict(line.split(':') for line in open('/proc/self/status') if line.startswith('Sig'))
libc = 0b11 << 31  # signals 32 and 33 are the C library's own, and nobody's to set
print(int(masks['SigBlk'], 16), hex(int(masks['SigIgn'], 16) & ~libc))
"""
    result = hosting.result(mark.spec(sys.executable, "-I", "-S", "-c", script))

    first, second, third = result.head.decode().splitlines()
    assert (first, second) == ("True [0, 1, 2]", "500 SIG_DFL")
    ignored = 0x1001000 | ignored_here()  # PIPE and XFSZ, which Python itself ignores
    assert third == f"0 {ignored:#x}"


@pytest.mark.parametrize(
    ("argv", "folder", "reason"),
    [
        (("no-such-command",), "/", "`no-such-command` not found on PATH"),
        (("/no/such",), "/", "`/no/such` not found"),
        (("/etc/passwd",), "/", "cannot run `/etc/passwd`: Permission denied"),
        (("true",), "/no/such", "cannot enter folder `/no/such`: No such file or directory"),
        (("echo", "a\0b"), "/", "contains a NUL character"),
        ((), "/", "there is no command to run"),
        (("echo", "\ud800"), "/", "surrogates not allowed"),
        (("echo", "x" * 3_000_000), "/", "Argument list too long"),
    ],
)
def test_not_started(hosting, argv, folder, reason):
    """A command that cannot start has status `failed` and a reason to read."""
    result = hosting.result(ProcessSpec(argv=argv, cwd=Path(folder)))

    assert (result.status, result.exit_code) == ("failed", None)
    assert reason in result.reason


@pytest.mark.parametrize(
    ("argv", "path"), [(("./torn",), "/bin"), (("torn",), ".:/bin")], ids=["by path", "on PATH"]
)
def test_a_script_for_a_program_that_is_not_there(
    hosting, tmp_path: Path, argv: tuple[str, ...], path: str
):
    """It is not the script that was not found."""
    (tmp_path / "torn").write_text("#!/no/such/program\n")
    (tmp_path / "torn").chmod(0o700)

    result = hosting.result(ProcessSpec(argv=argv, cwd=tmp_path, environment={"PATH": path}))

    assert result.status == "failed"
    assert result.reason.endswith("its interpreter is missing")


@pytest.mark.parametrize("timeout", [None, 1e300, float("inf")])
def test_a_timeout_beyond_all_clocks(hosting, mark, timeout):
    """A timeout that never comes is no reason to fail."""
    assert hosting.result(mark.spec("true", timeout=timeout)).status == "exited"


def test_death_by_signal(hosting, mark):
    """The exit code of a command that a signal ended is the negative signal."""
    assert hosting.result(mark.spec("sh", "-c", "kill -SEGV $$")).exit_code == -11


def test_a_group_kill(hosting, mark):
    """A command that kills its own process group does not hit its supervisor."""
    result = hosting.result(mark.spec("sh", "-c", "kill -KILL 0"))

    assert (result.status, result.exit_code) == ("exited", -9)


def children() -> set[str]:
    """Return the children of this process; other tests may have left a server of theirs."""
    found = set[str]()
    for file in Path("/proc/self/task").glob("*/children"):
        with suppress(FileNotFoundError):  # its thread has just ended
            found.update(file.read_text().split())
    return found


def test_fifty_at_once(hosting, mark):
    """Fifty commands at once each have their own result, and no descriptor or zombie is left."""

    async def scenario(host: ProcessHost) -> tuple[list[ProcessResult], int]:
        specs = [mark.spec("sh", "-c", f"echo {number}") for number in range(50)]

        async def run_all() -> list[ProcessResult]:
            processes = await asyncio.gather(*map(host.spawn, specs))
            return await asyncio.gather(*(process.wait() for process in processes))

        await run_all()  # the spawner stays, and some supervisors for the next commands
        before = len(os.listdir("/proc/self/fd"))
        results = await run_all()
        return results, len(os.listdir("/proc/self/fd")) - before

    others = children()
    results, more = hosting(scenario)

    assert [result.head for result in results] == [b"%d\n" % number for number in range(50)]
    assert more == 0
    assert children() <= others


def test_after_the_end(hosting, mark):
    """A closed host refuses to spawn, and may be closed again."""

    async def scenario(host: ProcessHost) -> None:
        await host.aclose()
        with pytest.raises(ToolError, match="the program is ending"):
            await host.spawn(mark.spec("true"))

    hosting(scenario)


def test_flood(hosting, mark, tmp_path):
    """Endless output stays within memory and file, leaves the loop free, and meets its timeout."""
    ticks = 0

    def tick() -> None:
        nonlocal ticks
        ticks += 1
        asyncio.get_running_loop().call_later(0.001, tick)

    async def scenario(host: ProcessHost) -> tuple[ProcessResult, int, int]:
        tick()
        pieces: list[int] = []
        spill = tmp_path / "spill" / "yes.txt"
        spec = mark.spec("yes", timeout=1.0, spill=spill, spill_limit=MEGABYTE, keep=1000)
        before = memory()
        process = await host.spawn(spec, lambda piece: pieces.append(len(piece)))
        result = await process.wait()
        assert max(pieces) < 20_000
        return result, memory() - before, len(pieces)

    result, growth, pieces = hosting(scenario)

    line = f"{mark.word}\n".encode()
    assert result.status == "timed_out"
    assert result.total > 10 * MEGABYTE
    assert result.head == (line * 100)[:1000]
    assert len(result.tail) == 1000
    assert growth < 32 * MEGABYTE
    assert 2 < pieces < 100
    assert ticks > 50
    assert result.spilled == tmp_path / "spill" / "yes.txt"
    assert result.spilled.stat().st_size == MEGABYTE
    assert stat.S_IMODE(result.spilled.stat().st_mode) == 0o600


def test_one_long_line(hosting, mark):
    """One line of 200 MB does not grow memory."""
    before = memory()
    script = "head -c 200000000 /dev/zero | tr '\\0' x"
    result = hosting.result(mark.spec("sh", "-c", script, keep=16_384))

    assert (result.status, result.total) == ("exited", 200_000_000)
    assert result.tail == b"x" * 16_384
    assert memory() - before < 32 * MEGABYTE


@pytest.mark.parametrize("size", [0, 1, 10, 19, 20, 21, 30, 5000])
def test_head_and_tail(hosting, mark, tmp_path, size):
    """Output that fits is whole in head and tail; longer output is whole in the file."""
    text = (b"0123456789abcdefghijklmnopqrstuvwxyz" * 200)[:size]
    spill = tmp_path / "whole.txt"
    result = hosting.result(mark.spec("sh", "-c", "cat", stdin=text, keep=10, spill=spill))

    assert (result.total, result.head) == (size, text[:10])
    assert result.tail == text[10:][-10:]
    assert result.spilled == (spill if size > 20 else None)
    if size > 20:
        assert spill.read_bytes() == text


@pytest.mark.parametrize("kind", ["file", "symlink"])
def test_a_planted_spill_file(hosting, mark, tmp_path, kind):
    """What already lies in the place of the output file is neither followed nor overwritten."""
    precious = tmp_path / "precious"
    precious.write_text("precious")
    spill = tmp_path / "spill"
    spill.hardlink_to(precious) if kind == "file" else spill.symlink_to(precious)

    result = hosting.result(mark.spec("sh", "-c", "seq 1000", keep=10, spill=spill))

    assert precious.read_text() == "precious"
    assert (result.status, result.spilled) == ("exited", None)
    assert "File exists" in result.reason


async def test_of_too_much_output_the_beginning_and_the_end_are_passed_on() -> None:
    """What a command printed last says how it ended; a line is never cut at its front."""
    pieces: list[bytes] = []
    trickle = Trickle(pieces.append)
    lines = [b"%d\n" % number for number in range(9_000)]
    for at in range(0, len(lines), 1_000):
        trickle.add(b"".join(lines[at : at + 1_000]))
    trickle.add(b"LAST\n")
    trickle.flush()
    (piece,) = pieces
    head, tail = re.split(rb"\n\[\.\.\. \d+ bytes left out \.\.\.\]\n", piece)
    gap = int(re.findall(rb"(\d+) bytes left out", piece)[0])
    assert len(head) + gap + len(tail) == len(b"".join(lines)) + 5
    assert (piece.startswith(b"0\n1\n"), piece.endswith(b"\n8999\nLAST\n")) == (True, True)
    assert tail.partition(b"\n")[0] + b"\n" in lines
    trickle.add(b"more\n")
    trickle.flush()
    assert pieces[1:] == [b"more\n"]
