"""The Enter key in a text box that sends what is typed at once: the box itself sends nothing for Enter, since its value has not changed."""

from __future__ import annotations

from typing import Any

import streamlit as st

WATCH = """
export default function ({ data, setTriggerValue }) {
  const box = [...document.querySelectorAll("input")].find((one) => one.getAttribute("aria-label") === data.label);
  if (!box) return;
  const pressed = (event) => {
    // Enter that ends the composition of a word in an input method chooses the word and nothing else
    if (event.key === "Enter" && !event.isComposing && event.keyCode !== 229) setTriggerValue("pressed", box.value);
  };
  box.addEventListener("keydown", pressed);
  return () => box.removeEventListener("keydown", pressed);
}
"""


def pressed_in(label: str, key: str) -> str | None:
    """What the text box with this label held when Enter was pressed in it just now; None where it was not."""
    watch = st.components.v2.component("enter_key", js=WATCH)
    found: Any = watch(key=key, data={"label": label}, height="content", on_pressed_change=lambda: None)
    text = found.pressed
    return text if isinstance(text, str) else None
