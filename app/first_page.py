"""The page of HTML that a browser loads first, with what it would otherwise find out by asking.

Streamlit's own page knows neither where the server is (it asks below the page's address, fails, waits and asks again) nor which of its scripts the
pages of this app need (each is fetched when the first element that needs it has arrived).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any

import streamlit
from starlette.responses import HTMLResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from app.pages import PAGES

STATIC = Path(streamlit.__file__).parent / "static"
INDEX = STATIC / "index.html"
EVERYWHERE = ("BidiComponent", "TextInput", "Selectbox", "PageLink", "Popover")
"""Scripts of Streamlit that every page needs, without their checksums."""
IMPORTED = re.compile(r'(?:from|import)\s*["`\']\./([\w.-]+\.js)["`\']')
LARGEST_HEAD = 8192
"""Letters of a script in which its imports are."""
LOCATE = """<script>
{
  const pages = new Set(%s), parts = location.pathname.replace(/\\/+$/, "").split("/");
  if (pages.has(parts.at(-1))) parts.pop();
  const base = location.origin + parts.join("/");
  window.__streamlit = { BACKEND_BASE_URL: base, MAIN_PAGE_BASE_URL: base, ...window.__streamlit };
}
</script>"""


class FirstPage:
    """Answers requests for a page of the app; whatever else is asked for goes on to Streamlit."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.names = frozenset(page.name for page in PAGES)
        self.html = first_page(INDEX.read_text(encoding="utf-8"), sorted(self.names), needed(EVERYWHERE))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] in ("GET", "HEAD") and self.is_page(scope):
            await HTMLResponse(self.html, headers={"Cache-Control": "no-cache"})(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    def is_page(self, scope: Scope) -> bool:
        """The start page, or one of the others directly below it."""
        base = streamlit.config.get_option("server.baseUrlPath").strip("/")
        path: str = scope["path"]
        start = f"/{base}/" if base else "/"
        return path.startswith(start) and (path == start or path[len(start) :] in self.names)


def first_page(index: str, names: Sequence[str], scripts: Iterable[str]) -> str:
    """Streamlit's page of HTML, which begins with where the server is and which scripts to fetch at once.

    Args:
        index: as Streamlit has it.
        names: of all pages.
        scripts: file names.
    """
    place = LOCATE % ("[" + ", ".join(f'"{escape(name)}"' for name in names) + "]")
    wanted = [script for script in scripts if script not in index]
    links = "".join(f'\n<link rel="modulepreload" crossorigin href="./static/js/{escape(script)}">' for script in wanted)
    return index.replace('<script type="module"', f'{place}\n<script type="module"', 1).replace("</head>", f"{links}\n</head>", 1)


def needed(names: Sequence[str], folder: Path = STATIC / "static" / "js") -> list[str]:
    """The files of scripts and of what they import, each once; names that this version of Streamlit does not have are left out."""
    waiting = [found.name for name in names for found in folder.glob(f"{name}.*.js")]
    seen: dict[str, Any] = {}
    while waiting:
        script = waiting.pop(0)
        if script not in seen and (folder / script).is_file():
            seen[script] = None
            with (folder / script).open(encoding="utf-8") as file:
                waiting += IMPORTED.findall(file.read(LARGEST_HEAD))
    return list(seen)
