"""The app as a server: ``python -m streamlit run app/server.py`` from the project's folder. The pages are in :mod:`app.main`."""

from __future__ import annotations

import streamlit as st
from starlette.middleware import Middleware

from app.first_page import FirstPage

app = st.App("main.py", middleware=[Middleware(FirstPage)])
