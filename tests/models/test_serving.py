"""The scripted model server that other tests lean on, as a process of its own."""

import json
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

from support.patience import seconds
from support.until import until

from steersman.ports.models.chat import ChatModel

TESTS = Path(__file__).resolve().parents[1]
SCRIPT = [
    {"do": "status", "status": 503, "headers": {"Retry-After": "0"}},
    {"do": "tools", "calls": [{"tool": "list", "arguments": {}}], "match": "files", "times": 0},
    {"do": "text", "text": "Hello."},
]


def test_serves_a_script_as_a_process(asker, tmp_path):
    """It prints its port, follows the script, shows what it was asked, and ends with its input."""
    script = tmp_path / "script.json"
    script.write_text(json.dumps(SCRIPT), "utf-8")
    command = [sys.executable, "-m", "support.model_server", "--script", str(script)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=TESTS) as process:
        assert process.stdout
        assert process.stdin
        address = f"http://127.0.0.1:{int(process.stdout.readline())}"
        model = ChatModel(f"{address}/v1", "m")
        hello, files, again = asker(model, "Hi", "which files?", "which files?")
        asked = list[Any]()

        def are_finished() -> bool:  # it notes that after the end
            with urllib.request.urlopen(f"{address}/requests", timeout=seconds(5)) as response:
                asked[:] = json.load(response)
            return bool(asked) and all(row["finished"] for row in asked)

        until(are_finished, lambda: asked)
        process.stdin.close()
        assert process.wait(seconds(10)) == 0
    assert hello.text == "Hello."
    assert files.tool_calls == again.tool_calls != ()
    assert len(asked) == 4
    assert asked[-1]["body"]["messages"][-1]["content"] == "which files?"
