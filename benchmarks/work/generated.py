"""Bulk for the tasks' folders: modules that nobody needs to read, and logs of hundreds of lines.

Everything is drawn from the seed that a task names, so that a folder is the same on every machine.
"""

from collections.abc import Callable
from random import Random
from typing import Any

_NOUNS = "order invoice basket parcel ticket rebate ledger voucher shelf route quota badge".split()
_VERBS = "load check merge split rank trim group score pack sort count mark".split()
_FIELDS = "amount weight price stock width rank age size level limit".split()
_USERS = "ana bela carl dora emil fritz gina hugo".split()

_FUNCTION = '''

def {verb}_{noun}(items, {field}={number}):
    """{Verb} each {noun} by its {field}; items are dictionaries."""
    found = []
    for item in items:
        value = item.get("{field}", {field})
        if value {sign} {number}:
            found.append({{**item, "{field}": value {operator} {factor}}})
        elif item.get("{noun}"):
            found.append(item)
    return found
'''


def modules(random: Random, folder: str, count: int) -> dict[str, str]:
    """Write `count` Python modules of about 70 lines, two folders deep, 600 tokens or more each."""
    files: dict[str, str] = {}
    names = [f"{verb}_{noun}" for verb in _VERBS for noun in _NOUNS]
    for number, name in enumerate(random.sample(names, count)):
        parts = [f'"""Rules of {name.replace("_", " and ")}, part {number}."""\n']
        for own in random.sample(names, 6):
            verb, noun = own.split("_")
            words = {
                "verb": verb,
                "Verb": verb.capitalize(),
                "noun": noun,
                "field": random.choice(_FIELDS),
                "number": random.randrange(2, 90),
                "sign": random.choice("<>"),
                "operator": random.choice("+-*"),
                "factor": random.randrange(2, 9),
            }
            parts.append(_FUNCTION.format(**words))
        files[f"{folder}/{random.choice(_NOUNS)}/{name}.py"] = "".join(parts)
    return files


def access_log(random: Random, path: str, lines: int) -> dict[str, str]:
    """Write one request a line: clock, method, address, status, milliseconds, id."""
    text = ""
    for number in range(lines):
        clock = f"{8 + number // 60:02d}:{number % 60:02d}:{random.randrange(60):02d}"
        address = f"/{random.choice(_NOUNS)}/{random.randrange(1000)}"
        took = random.randrange(3, 900) if random.random() < 0.98 else random.randrange(1000, 9000)
        status = random.choice([200, 200, 200, 201, 404, 500])
        identity = f"r{random.randrange(16**6):06x}"
        method = random.choice(["GET", "GET", "POST"])
        text += f"{clock} {method} {address} {status} {took}ms {identity}\n"
    return {path: text}


def auth_log(random: Random, path: str, lines: int) -> dict[str, str]:
    """Write log-ins, their failures and log-outs of eight people, one a line."""
    text = ""
    for number in range(lines):
        clock = f"2026-03-{1 + number // 24:02d} {number % 24:02d}:{random.randrange(60):02d}"
        what = random.choice(["login ok", "login ok", "login failed", "logout", "password changed"])
        text += f"{clock} user={random.choice(_USERS)} {what}\n"
    return {path: text}


def app_log(random: Random, path: str, lines: int) -> dict[str, str]:
    """Write lines of four levels; some messages quote the name of another level."""
    text = ""
    for number in range(lines):
        level = random.choice(["INFO", "INFO", "DEBUG", "WARN", "ERROR"])
        word = random.choice(["saved", "sent", "retried", "no ERROR found in", "dropped"])
        clock = f"{number // 60:02d}:{number % 60:02d}"
        text += f"{clock} [{level}] {word} {random.choice(_NOUNS)} {number}\n"
    return {path: text}


def expenses(random: Random, path: str, lines: int) -> dict[str, str]:
    """Write a CSV of day, category and amount; the amounts are whole numbers."""
    rows = ["day,category,amount"]
    for number in range(lines):
        kind = random.choice(["food", "rent", "travel", "books"])
        rows.append(
            f"2026-{1 + number // 20:02d}-{1 + number % 20:02d},{kind},{random.randrange(3, 200)}"
        )
    return {path: "\n".join(rows) + "\n"}


KINDS: dict[str, Callable[..., dict[str, str]]] = {
    "modules": modules,
    "access_log": access_log,
    "auth_log": auth_log,
    "app_log": app_log,
    "expenses": expenses,
}


def files_of(order: dict[str, Any]) -> dict[str, str]:
    """Return the files that an order of a task asks for: `kind`, `seed`, and arguments of the kind."""
    arguments = dict(order)
    return KINDS[arguments.pop("kind")](Random(arguments.pop("seed")), **arguments)
