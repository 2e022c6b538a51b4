"""Entity alignment of two knowledge graphs with Dual-AMN, kept in run folders that an analyst can look into.

The engine knows nothing of the app: it is the same from a notebook, the command line (``python -m engine``) and the pages.
"""

import os

# Large pages for large tensors: without them a training step on a CPU spends a fifth of its time on page faults. Read when torch is imported.
os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")

__version__ = "0.1.0"
