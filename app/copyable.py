"""An identifier with a button that copies it. ``st.code`` has one as well, but loads 1.5 MB of syntax highlighting for it."""

from __future__ import annotations

import streamlit as st

from app import text

LONGEST = 400
HTML = '<div class="row"><code></code><button type="button"></button></div>'
CSS = """
.row { display: flex; gap: 0.5rem; align-items: baseline; font-size: var(--st-base-font-size, 1rem); }
code { font-family: var(--st-code-font, monospace); font-size: 0.8125em; color: var(--st-text-color); overflow-wrap: anywhere; }
button { font: inherit; font-size: 0.75em; padding: 0 0.5em; border: 1px solid var(--st-border-color); border-radius: 0.375em;
  background: var(--st-background-color); color: var(--st-text-color); cursor: pointer; flex: none; }
button:hover { border-color: var(--st-primary-color); }
button:focus-visible { outline: 2px solid var(--st-primary-color); outline-offset: 1px; }
"""
COPY = """
export default function ({ data, parentElement }) {
  const code = parentElement.querySelector("code"), button = parentElement.querySelector("button");
  code.textContent = data.text;
  button.textContent = "Copy";
  button.setAttribute("aria-label", data.label);
  const selected = () => {  // without a secure connection there is no clipboard to write to
    const range = document.createRange();
    range.selectNodeContents(code);
    const selection = getSelection();
    selection.removeAllRanges();
    selection.addRange(range);
    if (!document.execCommand("copy")) throw new Error("not copied");
  };
  const said = (words) => {
    button.textContent = words;
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  };
  button.onclick = async () => {
    try {
      if (navigator.clipboard) await navigator.clipboard.writeText(data.text);
      else selected();
      said("Copied");
    } catch { said("Select and copy by hand"); }
  };
}
"""


def copyable(words: str, label: str, *, key: str) -> None:
    """Words to copy.

    Args:
        words: as the graph has them; they reach the browser as text and are shown as text.
        label: what the button does, for screen readers.
        key: from :func:`app.state.widget_key`.
    """
    component = st.components.v2.component("copyable", html=HTML, css=CSS, js=COPY)
    component(key=key, data={"text": text.cell(words, LONGEST), "label": label}, height="content")
