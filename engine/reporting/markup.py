"""HTML whose texts are escaped by construction: whatever is not made here is text."""

from __future__ import annotations

import html
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from engine.util.text import escape_controls, shorten

LONGEST: Final = 160
MOST: Final = 10_000
"""Characters of a text that is in a page as it is."""
VOID: Final = frozenset({"meta", "br", "line", "circle", "rect", "path"})
"""Elements without content; those of SVG are closed in themselves."""
SVG_VOID: Final = frozenset({"line", "circle", "rect", "path"})


class Html(str):
    """Text that is HTML already."""


def shown(value: object, longest: int = LONGEST) -> Html:
    """A text of others: one line, control and direction characters visible, cut where it is long, escaped."""
    return Html(html.escape(shorten(" ".join(str(value).split()), longest)))


def label(value: object, longest: int = 60) -> Html:
    """A text of others within a sentence: its direction of writing ends with it."""
    return Html(f"<bdi>{shown(value, longest)}</bdi>")


def element(tag: str, *content: object, **attributes: object) -> Html:
    """An element; what of its content is no :class:`Html` is text, and so are attributes. A trailing underscore of an attribute's name is dropped
    (``class_``), others become hyphens; an attribute of None is left out."""
    named = "".join(f' {name.rstrip("_").replace("_", "-")}="{html.escape(str(value))}"' for name, value in attributes.items() if value is not None)
    if tag in VOID:
        return Html(f"<{tag}{named}{'/' if tag in SVG_VOID else ''}>")
    return Html(f"<{tag}{named}>{together(content)}</{tag}>")


def together(parts: Iterable[object]) -> Html:
    """Parts in a row; what is no HTML is escaped."""
    return Html("".join(part if isinstance(part, Html) else html.escape(escape_controls(str(part)[:MOST])) for part in parts))


def data_table(headings: Sequence[str], rows: Iterable[Sequence[object]], numbers: Collection[int] = (), caption: str = "") -> Html:
    """A table that scrolls by itself where it is wide.

    Args:
        headings: of the columns; the first names the rows.
        rows: cells.
        numbers: columns that are aligned to the right.
        caption: what is in it.
    """

    def kind(column: int) -> str | None:
        return "number" if column in numbers else None

    head = element("tr", *(element("th", text, scope="col", class_=kind(column)) for column, text in enumerate(headings)))
    body = [
        element(
            "tr",
            *(
                element("td" if column else "th", cell, class_=kind(column), **({} if column else {"scope": "row"}))
                for column, cell in enumerate(row)
            ),
        )
        for row in rows
    ]
    named = [element("caption", caption)] if caption else []
    inner = element("table", *named, element("thead", head), element("tbody", *body))
    return element("div", inner, class_="wide", tabindex="0", role="region", aria_label=caption or headings[0])


def disclosure(title: str, *content: object) -> Html:
    """What is open only when it is asked to be."""
    return element("details", element("summary", title), *content)
