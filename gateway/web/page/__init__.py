"""The page for people: files that are sent as they are, and need nothing from elsewhere."""

from __future__ import annotations

from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

_FOLDER = Path(__file__).parent / "assets"


async def _index(request: Request) -> Response:
    """Send the page; the session that it shows is in its address."""
    return FileResponse(_FOLDER / "index.html", headers={"Cache-Control": "no-cache"})


def page_routes() -> list[Route | Mount]:
    """Return the routes of the page and its files."""
    return [
        Route("/", _index, methods=["GET"]),
        Mount("/assets", StaticFiles(directory=_FOLDER)),
    ]
