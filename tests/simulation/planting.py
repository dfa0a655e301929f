"""Planting faults: one thing of the product is replaced while a run is played, and put back after it."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from inspect import getattr_static
from typing import Any

__all__ = ["Plant", "always", "never", "none", "nothing", "planted", "planted_all", "unsaid"]

Plant = tuple[Any, str, Any]
"""What is replaced: a module, class or table, a name or key of it, and what takes its place."""


def always(*_: Any, **__: Any) -> bool:
    """Say yes."""
    return True


def never(*_: Any, **__: Any) -> bool:
    """Say no."""
    return False


def none(*_: Any, **__: Any) -> None:
    """Do nothing."""


def nothing(*_: Any, **__: Any) -> tuple[Any, ...]:
    """Find nothing."""
    return ()


def unsaid(*_: Any, **__: Any) -> str:
    """Give no reason."""
    return ""


@contextmanager
def planted(target: Any, name: Any, replacement: Any) -> Iterator[None]:
    """Replace an attribute of a module or class, or an item of a table, until the block ends.

    A function that another module has imported by its name is replaced there, where it is called.
    """
    is_inherited = isinstance(target, type) and name not in vars(target)
    original = target[name] if isinstance(target, Mapping) else getattr_static(target, name)
    _put(target, name, replacement)
    try:
        yield
    finally:
        if is_inherited:
            delattr(target, name)
        else:
            _put(target, name, original)


def _put(target: Any, name: Any, value: Any) -> None:
    if isinstance(target, Mapping):
        target[name] = value  # type: ignore[index]
    else:
        setattr(target, name, value)


@contextmanager
def planted_all(*plants: Plant) -> Iterator[None]:
    """Plant several, which together are one fault."""
    with ExitStack() as stack:
        for target, name, replacement in plants:
            stack.enter_context(planted(target, name, replacement))
        yield
