"""A harness of some fifty lines, the baseline: files in, whole files out, tests run once. No tools.

`python blocks.py URL REQUEST [ROUNDS]` works in the present folder. Its prompt was written on other tasks
than those of this benchmark. It shows every file that is small, at most 24,000 characters in all.
"""

import json
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

SYSTEM = """You answer questions about files and change files. You are given the files of the folder.
If a file must be changed or created, print its path alone on a line, then its whole new content in a \
fenced block:

hello.py
```python
print("new content")
```

Use the paths as they are given. Print no file that stays as it is. If nothing must be changed, only \
answer in words."""
ROOM = 24_000  # characters
FILE = re.compile(r"^[#*`\s]*([\w./-]+\.\w+)[*`:]*\s*\n+```[\w.]*\n(.*?)^```", re.M | re.S)


def shown() -> str:
    """Return the files of the folder, long ones shortened."""
    parts: list[str] = []
    for path in sorted(Path(".").rglob("*")):
        if not path.is_file() or re.search(r"(^|/)(\.git|__pycache__)/", str(path)):
            continue
        lines = path.read_text(errors="replace").splitlines()
        if len(lines) > 60:
            lines = [*lines[:20], f"[... {len(lines) - 20} more lines]"]
        parts.append("\n".join([str(path), "```", *lines, "```"]))
    return "\n\n".join(parts)[:ROOM]


def ask(url: str, messages: list[dict[str, str]]) -> str:
    """Return the model's answer."""
    body = json.dumps({"model": "bench", "messages": messages, "max_tokens": 700}).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{url}/v1/chat/completions", body, headers)
    with urllib.request.urlopen(request, timeout=300) as answer:
        return str(json.load(answer)["choices"][0]["message"]["content"])


def write(text: str) -> list[str]:
    """Write the files of an answer, tests excepted; return the paths of those that changed."""
    done: list[str] = []
    for name, content in FILE.findall(text):
        path = Path(name)
        is_same = path.is_file() and path.read_text().rstrip() == content.rstrip()
        if path.is_absolute() or ".." in path.parts or path.name.startswith("test_") or is_same:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        done.append(name)
    return done


def main() -> None:
    """Ask, write, test, and ask once more if the tests fail."""
    url, request, rounds = sys.argv[1], sys.argv[2], int((sys.argv[3:] or ["2"])[0])
    user = {"role": "user", "content": f"{shown()}\n\n{request}"}
    messages = [{"role": "system", "content": SYSTEM}, user]
    for _ in range(rounds):
        text = ask(url, messages)
        done = write(text)
        print(text)
        tests = ["python3", "-B", "-m", "unittest", "-q"]
        if not done or not list(Path(".").rglob("test_*.py")):
            return
        ran = subprocess.run(tests, capture_output=True, text=True, timeout=20)
        if ran.returncode == 0:
            return
        again = f"The tests still fail:\n{ran.stderr[-900:]}\nPrint path and whole corrected file."
        messages += [{"role": "assistant", "content": text}, {"role": "user", "content": again}]


if __name__ == "__main__":
    main()
