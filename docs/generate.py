"""Write the parts of the docs that say what the code says; `--check` only compares.

Each page is made by one function from what the program really reads; add a pair to `PAGES`.
"""

import sys
from collections.abc import Callable
from pathlib import Path

from steersman.workflows.reference import Entry, entries
from steersman.workflows.shape import dotted

__all__ = ["PAGES", "configuration", "main"]

DOCS = Path(__file__).resolve().parent

HEAD = """\
# Configuration

<!-- Written by docs/generate.py from config.toml: change that file, then run `make docs`. -->

Settings are TOML. Later layers win, key by key:

1. the [`config.toml`](../config.toml) that is shipped, with every key,
2. your own `config.toml` (`steersman config path` prints where),
3. `steersman.toml` in the project folder,
4. the file that `STEERSMAN_CONFIG` names,
5. flags of the command line.

Permission rules are the exception: those of a later layer are put before those of an earlier one.
A project's `steersman.toml` can set `permissions`, `tools`, `models`, an agent's `model` and
`tools`, and `auto_queue.persistence.path` only after `steersman trust`, and after each change of it
only when trusted again.

`steersman config show` prints what is in force and which file set it, `steersman config check`
finds mistakes, and `steersman config schema` prints a JSON Schema for your editor. With
`STEERSMAN_HOME` set, `config.toml`, `state/` and `cache/` are all in that folder.
"""


def configuration() -> str:
    """Describe every key of `config.toml`, in its order."""
    blocks = [HEAD, "## General\n"]
    for entry in entries():
        blocks.append(_key(entry) if entry.value else _table(entry))
    return "\n".join(blocks)


PAGES: list[tuple[str, Callable[[], str]]] = [("configuration.md", configuration)]


def main(arguments: list[str]) -> int:
    """Write all pages, or with `--check` name those that are out of date and exit 1."""
    stale: list[str] = []
    for name, make in PAGES:
        path, text = DOCS / name, make()
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if "--check" not in arguments:
            path.write_text(text, encoding="utf-8")
            print(f"docs/{name}: written")
    if stale and "--check" in arguments:
        names = ", ".join(f"docs/{name}" for name in stale)
        print(f"out of date: {names}; `make docs` writes them", file=sys.stderr)
        return 1
    return 0


def _table(entry: Entry) -> str:
    comment = f"\n{entry.comment}\n" if entry.comment else ""
    return f"## `[{dotted(entry.where)}]`\n{comment}"


def _key(entry: Entry) -> str:
    note = "# example\n" if entry.is_example else ""
    name = entry.where[-1]
    shown = f"```toml\n{note}{name} = {entry.value}\n```"
    return f"### `{dotted(entry.where)}`\n\n{entry.comment}\n\n{shown}\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
