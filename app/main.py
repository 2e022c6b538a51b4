"""The router: who may enter and which pages there are. Run it from the project's folder with ``python -m streamlit run app/main.py``."""

from __future__ import annotations

import streamlit as st

from app import components, downloads, pages, sign_in, upkeep

SIDEBAR_WIDTH = 244  # pixels; folded on phones

st.set_page_config(page_title="Dual-AMN Explorer", page_icon="🔗", layout="wide", initial_sidebar_state=SIDEBAR_WIDTH)
downloads.keep_downloads()
upkeep.give_memory_back()
sign_in.require()
page = st.navigation(
    [st.Page(page.script, title=page.title, icon=page.icon, url_path=page.name, default=page is pages.HOME) for page in pages.PAGES],
    position="hidden",
)
with components.errors_shown(way_on=False):  # of what is around a page's content, which shows its own errors
    page.run()
