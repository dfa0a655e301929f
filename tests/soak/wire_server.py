"""An MCP server that gives the answer which a file has, and good ones to all else; standard library only.

The file is one line, with the method that it answers under `to`, as far as it is still JSON.
"""

import json
import sys
from pathlib import Path
from typing import Any

GOOD: dict[str, Any] = {
    "initialize": {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {"listChanged": True}},
        "serverInfo": {"name": "s", "version": "1"},
    },
    "tools/list": {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]},
    "tools/call": {"content": [{"type": "text", "text": "good"}]},
}


def _said(method: str, key: Any, given: str) -> str:
    wanted = next((name for name in GOOD if name in given), "tools/call")
    if given and wanted == method:
        return given.replace('"ID"', json.dumps(key))
    if method in GOOD:
        return json.dumps({"jsonrpc": "2.0", "id": key, "result": GOOD[method]})
    fault = {"code": -32601, "message": f"no {method}"}
    return json.dumps({"jsonrpc": "2.0", "id": key, "error": fault})


def main() -> None:
    """Answer until the input ends; behind a broken answer to a call comes a good one."""
    for line in sys.stdin:
        message = json.loads(line)
        method, key = message.get("method"), message.get("id")
        if method is None or key is None:
            continue
        given = Path(sys.argv[1]).read_text("utf-8", "replace")
        said = _said(method, key, given)
        sys.stdout.buffer.write(said.encode("utf-8", "replace") + b"\n")
        if said == given.replace('"ID"', json.dumps(key)) and method in GOOD:
            good = json.dumps({"jsonrpc": "2.0", "id": key, "result": GOOD[method]})
            sys.stdout.buffer.write(
                good.encode() + b"\n"
            )  # or the client would wait for its answer
        sys.stdout.buffer.flush()


main()
