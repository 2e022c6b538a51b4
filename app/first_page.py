"""The page of HTML that a browser loads first, with what it would otherwise find out by asking.

Streamlit's own page does not know where the server is: below the address of a page it asks in the wrong place, fails, waits and asks again, and then
asks for settings that are known beforehand. That is a fifth of the time of a first view.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import streamlit
from starlette.responses import HTMLResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from streamlit import config

from app.pages import PAGES

INDEX = Path(streamlit.__file__).parent / "static" / "index.html"
FIRST_SCRIPT = '<script type="module"'
LOCATE = """<script>
{
  const pages = new Set(%s), parts = location.pathname.replace(/\\/+$/, "").split("/");
  if (pages.has(parts.at(-1))) parts.pop();
  const base = location.origin + parts.join("/");
  window.__streamlit = { BACKEND_BASE_URL: base, MAIN_PAGE_BASE_URL: base, HOST_CONFIG: %s };
}
</script>
"""


class FirstPage:
    """Answers requests for a page of the app; whatever else is asked for is passed on to Streamlit."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.names = frozenset(page.name for page in PAGES)
        self.html = first_page(INDEX.read_text(encoding="utf-8"), self.names, config.get_option("client.allowedOrigins"))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] in ("GET", "HEAD") and self.is_page(scope["path"]):
            await HTMLResponse(self.html, headers={"Cache-Control": "no-cache"})(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    def is_page(self, path: str) -> bool:
        """Whether a path is that of the start page, or of one of the others directly below it."""
        base = (config.get_option("server.baseUrlPath") or "").strip("/")
        start = f"/{base}/" if base else "/"
        return path.startswith(start) and (path == start or path[len(start) :] in self.names)


def first_page(index: str, names: Iterable[str], origins: Iterable[str]) -> str:
    """Streamlit's page of HTML, which begins with where the server is and what it would say of itself.

    Args:
        index: as Streamlit has it; one without the script that is looked for stays as it is, and the browser asks as before.
        names: of all pages.
        origins: that may hold the app in a frame and send it messages.
    """
    settings = {"allowedOrigins": list(origins), "useExternalAuthToken": False, "enableCustomParentMessages": False, "blockErrorDialogs": False}
    place = LOCATE % tuple(json.dumps(one).replace("<", "\\u003c") for one in (sorted(names), settings))
    return index.replace(FIRST_SCRIPT, place + FIRST_SCRIPT, 1)
