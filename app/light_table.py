"""Small tables as the browser has them: rows to read or to choose from, for which the grid of ``st.dataframe`` would be 1.3 MB to fetch.

They wrap long texts and so fit a phone, and screen readers read them as tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import pandas as pd
import streamlit as st

from app.column_widths import shown_format

HTML = '<div class="frame" tabindex="-1"><table><thead></thead><tbody></tbody></table></div>'
CSS = """
.frame { overflow: auto; border: 1px solid var(--st-border-color); border-radius: 0.375rem; color: var(--st-text-color);
  font-family: var(--st-font, sans-serif); }
table { width: 100%; border-collapse: collapse; font-size: 0.875rem; line-height: 1.4; }
th, td { padding: 0.35rem 0.6rem; text-align: start; vertical-align: top; overflow-wrap: anywhere; unicode-bidi: plaintext; }
th { position: sticky; top: 0; font-weight: 400; background: var(--st-secondary-background-color); overflow-wrap: break-word; }
th[title] { text-decoration: underline dotted; text-underline-offset: 0.2em; cursor: help; }
tbody tr { border-top: 1px solid var(--st-border-color); }
@media (min-width: 501px) { td { min-width: 6em; } }
.wide td { min-width: 4.5em; }
.number, td.number, .wide td.number { min-width: 0; text-align: end; white-space: nowrap; font-variant-numeric: tabular-nums; }
button { all: unset; cursor: pointer; text-decoration: underline; text-underline-offset: 0.15em; }
button:focus-visible { outline: 2px solid var(--st-primary-color); outline-offset: 2px; }
.choices tr { cursor: pointer; }
.choices tbody tr:hover { background: var(--st-secondary-background-color); }
.chosen td:first-child { box-shadow: inset 4px 0 var(--st-primary-color); font-weight: 600; }
@media (max-width: 500px) { table { font-size: 0.8rem; } th, td { padding: 0.3rem 0.35rem; } }
"""
SCRIPT = """
const shown = (value, format) => {
  if (value === null || value === undefined) return "\\u2013";
  if (typeof value !== "number") return value;
  const found = /^%(\\+)?(?:,)?(?:\\.(\\d+))?[fd]$/.exec(format ?? ""), sign = value < 0 ? "\\u2212" : found?.[1] ? "+" : "";
  const size = Math.abs(value);
  if (format === "percent") return `${sign}${(100 * size).toLocaleString("en-US", { maximumFractionDigits: 2 })}%`;
  if (found) return sign + size.toLocaleString("en-US", { minimumFractionDigits: found[2] ?? 0, maximumFractionDigits: found[2] ?? 0 });
  return sign + size.toLocaleString("en-US", { maximumFractionDigits: 4 });
};
export default function ({ data, parentElement, setStateValue, setTriggerValue }) {
  const frame = parentElement.querySelector(".frame"), table = frame.querySelector("table");
  const make = (name, words) => Object.assign(document.createElement(name), { textContent: words });
  const numbers = data.columns.map((_, place) => data.rows.some((row) => typeof row[place] === "number"));
  const head = document.createElement("tr");
  data.columns.forEach(({ label, help }, place) => {
    const cell = Object.assign(make("th", label), { scope: "col" });
    if (numbers[place]) cell.className = "number";
    if (help) cell.title = help;
    head.append(cell);
  });
  const rows = data.rows.map((values, number) => {
    const row = document.createElement("tr"), chosen = number === data.chosen;
    const named = values.findIndex((value, place) => shown(value, data.columns[place].format) !== "");
    values.forEach((value, place) => {
      const cell = make("td", ""), words = shown(value, data.columns[place].format);
      if (numbers[place]) cell.className = "number";
      if (data.chooses && place === named) {
        const button = Object.assign(make("button", words), { type: "button" });
        button.setAttribute("aria-pressed", chosen);
        cell.append(button);
      } else cell.textContent = words;
      row.append(cell);
    });
    if (data.chooses) row.onclick = () => (data.keeps ? setStateValue : setTriggerValue)("row", number);
    row.classList.toggle("chosen", chosen);
    return row;
  });
  table.classList.toggle("choices", data.chooses);
  table.setAttribute("aria-label", data.alt);
  table.tHead.replaceChildren(head);
  table.tBodies[0].replaceChildren(...rows);
  frame.style.maxHeight = data.height ? `${data.height}px` : "";
  table.classList.toggle("wide", data.columns.length > 4);
  const reachable = () => {  // by the keyboard, where it has to be scrolled
    frame.tabIndex = frame.scrollWidth > frame.clientWidth || frame.scrollHeight > frame.clientHeight ? 0 : -1;
  };
  const sized = new ResizeObserver(reachable);
  sized.observe(frame);
  reachable();
  frame.dataset.drawn = "yes";
  return () => sized.disconnect();
}
"""


def show(
    data: pd.DataFrame,
    *,
    key: str,
    alt: str,
    columns: Mapping[str, Any] | None = None,
    height: int | None = None,
    chosen: int | None = None,
    on_choose: Callable[[], None] | Literal["rerun"] | None = None,
) -> int | None:
    """Show a table.

    Args:
        data: texts have passed :func:`app.text.cell`; they are shown as text.
        key: of the widget.
        alt: its name for screen readers.
        columns: as ``column_config`` of ``st.dataframe``, of which labels, helps and formats of numbers are looked at.
        height: in pixels at most; None: all rows are in sight.
        chosen: the row that is marked.
        on_choose: called when a row is clicked; "rerun": the page is drawn again, and the row stays marked; None: rows cannot be chosen.

    Returns:
        The marked row.
    """
    configs = {str(name): (columns or {}).get(str(name)) or {} for name in data.columns}
    heads = [{"label": one.get("label") or name, "help": one.get("help"), "format": shown_format(one)} for name, one in configs.items()]
    rows = data.astype(object).where(data.notna(), None).to_numpy().tolist()
    kept = (st.session_state.get(key) or {}).get("row") if on_choose == "rerun" else None
    marked = chosen if kept is None else _row(kept, len(data))
    content = {"columns": heads, "rows": rows, "alt": alt, "height": height, "chosen": marked}
    content |= {"chooses": on_choose is not None, "keeps": on_choose == "rerun"}
    component = st.components.v2.component("light_table", html=HTML, css=CSS, js=SCRIPT)
    if on_choose is None:
        component(key=key, data=content, height="content")
    elif callable(on_choose):
        component(key=key, data=content, height="content", on_row_change=on_choose)
    else:
        component(key=key, data=content, height="content", default={"row": chosen}, on_row_change=lambda: None)
    return marked


def clicked_row(key: str, rows: int) -> int | None:
    """For ``on_choose``: the row that was clicked; whatever the browser sends may be forged."""
    return _row(st.session_state[key]["row"], rows)


def _row(value: object, rows: int) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < rows else None
