"""Entity alignment of two knowledge graphs with Dual-AMN, kept in run folders that an analyst can look into.

The engine knows nothing of the app: it is the same from a notebook, the command line (``python -m engine``) and the pages.
"""

__version__ = "0.1.0"
