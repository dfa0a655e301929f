"""The tool `fetch`: a page of the web as Markdown, or a text file as it is.

A program of ours gets it (`fetching.py`), so that a page that takes a parser apart ends nothing else.
"""

from urllib.parse import urljoin, urlsplit, urlunsplit

from ...machines.errors import ToolError
from ...workflows.settings import ToolDeclaration
from ..models.route import Address
from ..process.own_python import module_command
from .shell import DeclaredTool
from .tool import ToolResources

_SECONDS = 60.0
_LONGEST = 4_000


class FetchTool(DeclaredTool):
    """Reads a page; see `Tool`. Rules are about its address, as `canonical` writes it."""

    is_idempotent = True

    def __init__(self, resources: ToolResources) -> None:
        declaration = ToolDeclaration(
            name="fetch",
            description="Read a page of the web as Markdown, or a text file there as it is.",
            run=module_command("steersman.ports.tools.fetching", *resources.fetch),
            parameters={"url": {"type": "string", "description": "http or https"}},
            timeout=_SECONDS,
        )
        super().__init__(declaration, resources)

    def fault(self, arguments: dict[str, object]) -> str:
        """Return the fault of the arguments; empty if there is none."""
        try:
            return super().fault(arguments) or (canonical(str(arguments["url"])) and "")
        except ToolError as error:
            return error.message


def canonical(url: str) -> str:
    """Write an address in the one way that rules are about: no `..`, no usual port, no fragment.

    Raises `ToolError` for what is no address of the web, or has a user name in it.
    """
    text = url.strip()
    try:
        parts, address = urlsplit(text), Address.of(text)
    except ValueError as error:
        raise ToolError(f"`{text[:80]}` is no address: {error}") from error
    if parts.scheme not in ("http", "https") or not address.host or len(text) > _LONGEST:
        raise ToolError(f"`{text[:80]}` is no address that begins with http:// or https://")
    if "@" in parts.netloc or any(ord(sign) <= 32 or sign == "\\" for sign in text):
        raise ToolError("an address here has no user name, no space and no backslash")
    place = address.header.lower()
    path = urlsplit(urljoin(f"http://{place}/", parts.path or "/")).path
    return urlunsplit((parts.scheme, place, path or "/", parts.query, ""))
