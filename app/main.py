"""The router: which pages there are, and nothing else. Run it from the project's folder with ``python -m streamlit run app/main.py``."""

from __future__ import annotations

import streamlit as st

st.set_page_config(page_title="Dual-AMN Explorer", page_icon="🔗", layout="wide")
st.navigation(
    [
        st.Page("views/home.py", title="Home", icon=":material/home:", url_path="home", default=True),
        st.Page("views/entity.py", title="Entity", icon=":material/travel_explore:", url_path="entity"),
    ],
    position="top",
).run()
