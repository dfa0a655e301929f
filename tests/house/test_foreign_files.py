"""Files that people and projects bring are read by one module, within bounds."""

import ast
from typing import Any

READER = "workflows/foreign_file.py"
PARSERS = {"json.load", "json.loads", "tomllib.load", "tomllib.loads"}
OWN = {
    "cli/emit.py": "the begin of the person's configuration, before anything is imported",
    "cli/main.py": "/dev/null",
    "cli/prompt.py": "its own file",
    "cli/screen/terminal.py": "its own file",
    "cli/commands/docs.py": "shipped",
    "cli/commands/serve.py": "the log of a process that it started",
    "gateway/commands/installed.py": "what it has just written",
    "extensions/mcp/task_file.py": "its own notes, in the home",
    "gateway/views/evidence.py": "a signed file, which another program reads",
    "gateway/home/salvage.py": "a damaged database, however large it is",
    "gateway/host/hook_runner.py": "its own file",
    "gateway/host/offline_writer.py": "writes",
    "gateway/remote.py": "the answer of another process of this program",
    "gateway/reach.py": "its own file",
    "gateway/home/trash.py": "its own files",
    "gateway/web/access.py": "its own file, opened with its own checks",
    "gateway/web/push.py": "its own file",
    "journal/encoding.py": "its own entries",
    "journal/lock.py": "/proc",
    "ports/tools/fetching.py": "what its own program has written to it",
    "restore/store.py": "its own file",
    "workspace/beside.py": "its own files",
    "workspace/blob_store.py": "its own files",
    "workspace/change_log.py": "its own files",
    "workspace/git.py": "its own repository",
    "workspace/prune.py": "its own files",
    "workspace/restore.py": "its own files",
    "workspace/scanner.py": "its own files",
    "workspace/workspace.py": "its own files",
    "extensions/agent_hooks/installation.py": "its own receipts",
    "extensions/agent_hooks/own_file.py": "its own file",
    "ports/hooks.py": "what this program sends to a hook",
    "ports/judging.py": "256 bytes of a regular file",
    "ports/models/said_calls.py": "one string",
    "extensions/embedded/download.py": "its own downloads",
    "extensions/embedded/server.py": "its own input, and /sys",
    "ports/models/weights.py": "/sys",
    "ports/models/reply.py": "the same bounds, with numbers of its own",
    "ports/process/pipe.py": "its own process",
    "extensions/ray/driver.py": "its own process",
    "extensions/ray/placement.py": "its own files",
    "extensions/ray/sending.py": "its own files",
    "ports/tools/calling.py": "what this program sends to a function",
    "ports/tools/function.py": "a note of its own process",
    "ports/tools/place.py": "a descriptor that it has checked",
    "ports/tools/search_program.py": "what this program sends to a search",
    "workflows/config.py": "shipped",
    "workflows/extras.py": "what an installer wrote",
    "workflows/flow/workflow_file.py": "shipped",
    "workflows/plugins.py": "what is installed",
    "workflows/positions.py": "a string that has been parsed before",
    "workflows/schema.py": "shipped",
    "workflows/settings.py": "shipped",
    "workflows/spelling.py": "one string",
}
"""What else may be read so, and whose it is."""
DECODED = {
    "workspace/git.py": "the files of git",
    "extensions/agent_hooks/installation.py": "what it shows as a difference",
    "extensions/embedded/package_index.py": "a page of an index",
    "ports/picture.py": "the first bytes of a picture",
    "workflows/trust.py": "what is compared byte by byte, and searched for names",
}
"""What reads bytes of other people and decodes them without `decoded`, and why."""


def unbounded(module: Any) -> list[str]:
    """List the calls that read a file whole, or parse a text of any depth."""
    found: list[str] = []
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.Call):
            continue
        called, is_method = ast.unparse(node.func), isinstance(node.func, ast.Attribute)
        name = called.rpartition(".")[2]
        modes = [
            part.value for part in node.args[not is_method :] if isinstance(part, ast.Constant)
        ]
        reads = not is_method if not modes else str(modes[0]).startswith("r")
        if (
            called in PARSERS
            or (is_method and name in ("read_text", "read_bytes"))
            or (name == "open" and reads)
        ):
            found.append(f"{module.name}:{node.lineno} {called}")
    return found


def test_foreign_files_are_read_within_bounds(modules: list[Any]) -> None:
    """No other module opens or parses a file without bounds, but for what nobody else writes."""
    reading = {module.name: calls for module in modules if (calls := unbounded(module))}
    assert {name: reading[name] for name in reading if name not in {*OWN, READER}} == {}
    assert sorted(OWN.keys() - reading.keys()) == [], "reads no file any more"


def test_texts_of_people_are_decoded_in_one_place(modules: list[Any]) -> None:
    """What reads the bytes of a file lets the same module drop a byte order mark and unify line ends."""
    found = {
        module.name
        for module in modules
        if module.name != READER and "read_foreign(" in module.text and ".decode(" in module.text
    }
    assert found == set(DECODED)


def test_one_module_knows_the_home_folder(modules: list[Any]) -> None:
    """`Path.home` and `expanduser` of a path raise `RuntimeError` where an account has none."""
    found = [
        f"{module.name}:{node.lineno}"
        for module in modules
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if node.func.attr in ("home", "expanduser")
        if ast.unparse(node.func.value) not in ("os.path", "self")
    ]
    assert found == []
