"""Entity alignment of two knowledge graphs with Dual-AMN, kept in run folders that an analyst can look into.

The engine knows nothing of the app: it is the same from a notebook, the command line (``python -m engine``) and the pages.
"""

import os

# Large pages for large tensors: without them a training step on a CPU spends a fifth of its time on page faults. Read when torch is imported.
os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")

# Matrix products must not choose their number of threads by the machine's load: sums would be taken in another order, and a resumed run would
# differ from an unbroken one in the last digits. Read when the library is loaded.
os.environ.setdefault("MKL_DYNAMIC", "FALSE")
os.environ.setdefault("OMP_DYNAMIC", "FALSE")

# After a matrix product its threads would go on spinning for milliseconds, on the cores that our own threads (engine.util.threads) need by then.
os.environ.setdefault("GOMP_SPINCOUNT", "1000")

__version__ = "0.2.0"
