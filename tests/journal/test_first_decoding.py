"""Journals are read by several threads from the first moment on."""

import subprocess
import sys
from collections import Counter

import pytest
from support.patience import seconds

pytestmark = pytest.mark.nightly

PROGRAM = """
import sys, threading
sys.setswitchinterval(1e-6)
from steersman.journal.codec import decode_entry
call = {"call": "t1.s1.c1", "tool": "read", "arguments": {}}
said = {"role": "assistant", "text": "hi", "tool_calls": [call], "thoughts": [{"text": "x"}]}
entries = [
    {"kind": "answered", "turn": "t1", "step": 1, "usage": {"input": 1}, "messages": [said]},
    {"kind": "answer_cut", "turn": "t1", "step": 1, "messages": [said]},
]
start = threading.Barrier(6)
def work(way):
    start.wait()
    for entry in entries[::way]:
        decode_entry(entry)
threads = [threading.Thread(target=work, args=(1 if n % 2 else -1,)) for n in range(6)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


def test_threads_that_decode_at_the_same_time_end_no_program() -> None:
    """The first entries of a new process are decoded by six threads at once, again and again."""
    codes = Counter(
        subprocess.run([sys.executable, "-c", PROGRAM], check=False, timeout=seconds(30)).returncode
        for _ in range(20)
    )
    assert codes == {0: 20}
