"""Compiled kernels kept on disk for the next process, for as long as they are what would be compiled now.

numba keeps a function's machine code until the file that holds the function changes. It does not look at what the function calls in other files, at
constants from there, at the options it was compiled with, nor at LLVM's version. All of that is in the stamp that is compared here. The place is
numba's own: ``NUMBA_CACHE_DIR``, else beside the source, else the user's cache folder. Where none can be written (a read-only container), nothing is
kept and no folder is made: each process compiles for itself.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import llvmlite
import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile

OWN = __name__.partition(".")[0]
"""The package whose modules are looked at when a kernel names one as a whole."""
PLAIN = (bool, int, float, complex, str, bytes, tuple, frozenset, type(None))
"""Values that numba compiles in as constants."""
MISSING = object()
"""In place of a name that is no global: a builtin, or an attribute of something."""


class KernelCache(FunctionCache):
    """numba's cache of one function with a stamp of ours."""

    def __init__(self, function: Callable[..., Any], stamp: str) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]
        place = {"cache_path": self._cache_path, "filename_base": self._impl.filename_base}
        self._cache_file = IndexDataCacheFile(**place, source_stamp=stamp)  # type: ignore[no-untyped-call]

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The kept code; None, so that it is compiled, also where it cannot be read."""
        try:
            return super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        except Exception:  # whatever is wrong with kept code, compiling makes it again
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the code; where the disk is full or fails, the next process compiles again."""
        with contextlib.suppress(OSError):
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]


def compile_cached(function: Callable[..., Any], **options: Any) -> Any:
    """``numba.njit(**options)(function)``, whose machine code is kept and found again."""
    dispatcher = numba.njit(**options)(function)
    with contextlib.suppress(RuntimeError):  # no place to write to
        dispatcher._cache = KernelCache(function, stamp(function, options))
    return dispatcher


def stamp(function: Callable[..., Any], options: Mapping[str, Any]) -> str:
    """What a kernel's machine code depends on, as one text: sources, constants, options and versions."""
    words = [
        numba.__version__,
        llvmlite.__version__,
        *(f"{name}={_settled(options[name])}" for name in sorted(options)),
        *sorted(set(needed_parts(function))),
    ]
    return hashlib.sha256("\n".join(words).encode()).hexdigest()


def needed_parts(function: Callable[..., Any], seen: frozenset[int] = frozenset()) -> Iterator[str]:
    """The content of each file and the value of each constant that a function needs, and what is needed by the kernels that it calls."""
    yield content(source_of(function))
    for name in sorted(names_in(function.__code__)):
        value = function.__globals__.get(name, MISSING)
        called = python_function(value)
        if isinstance(value, PLAIN):
            yield f"{name}={value!r}"
        elif called is not None and id(called) not in seen:
            yield f"{name}={_settled(getattr(value, 'targetoptions', {}))}"
            yield from needed_parts(called, seen | {id(called)})
        elif isinstance(value, ModuleType) and value.__name__.partition(".")[0] == OWN and value.__file__:
            yield content(value.__file__)


def names_in(code: CodeType) -> set[str]:
    """Global names and attributes of a function and of the functions within it."""
    inner = (names_in(constant) for constant in code.co_consts if isinstance(constant, CodeType))
    return set(code.co_names).union(*inner)


def python_function(value: Any) -> Callable[..., Any] | None:
    """What a compiled function or an intrinsic was made from; a plain function, which numba inlines, as it is."""
    found = getattr(value, "py_func", None) or getattr(value, "_defn", None) or value
    return found if inspect.isfunction(found) else None


def source_of(function: Callable[..., Any]) -> str:
    return function.__code__.co_filename


@cache
def content(path: str) -> str:
    """A file's checksum; of text that lies in no file, its name."""
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return path


def _settled(value: Any) -> str:
    """A value's text, the same in every process: sets are ordered."""
    if isinstance(value, Mapping):
        return repr(sorted((str(key), _settled(one)) for key, one in value.items()))
    return repr(sorted(map(str, value))) if isinstance(value, set | frozenset) else repr(value)
