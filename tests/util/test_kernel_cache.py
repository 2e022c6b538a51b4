"""Compiled kernels are used again exactly as long as nothing that they are made of has changed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine import search
from engine.model import kernels as encoder_kernels
from engine.util import kernel_cache, prefetch
from engine.util.kernel_cache import compile_cached, stamp

ROOT = Path(__file__).resolve().parents[2]
HELPER = """
from engine.util.threads import compiled

FACTOR = {factor}

@compiled
def helped(x):
    return x * {inside}
"""
CALLER = """
from engine.util.threads import compiled
from helper import FACTOR, helped

@compiled
def called(x):
    return helped(x) + FACTOR

print(called(1.0), sum(called.stats.cache_hits.values()))
"""
# A process for each version of the files; they share what takes seconds to import.
CALLED_BY_EACH = """
import importlib, json, os, sys
from pathlib import Path

import engine.util.threads

for files in json.loads(sys.argv[1]):
    for name, text in files.items():
        Path(sys.path[0], name).write_text(text)
    process = os.fork()
    if not process:
        importlib.invalidate_caches()
        import caller
        sys.exit()
    if os.waitpid(process, 0)[1]:
        sys.exit(1)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_what_a_kernel_calls_in_another_file_counts(tmp_path: Path) -> None:
    """What the caller computes in a process of its own, and how often the cache had it."""
    versions = [(1, 2), (1, 2), (1, 5), (7, 5)]
    files = [{"helper.py": HELPER.format(factor=factor, inside=inside), "caller.py": CALLER} for factor, inside in versions]
    (tmp_path / "each.py").write_text(CALLED_BY_EACH)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "kept"), "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, str(tmp_path / "each.py"), json.dumps(files)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=300)
    first, loaded, another_function, another_constant = done.stdout.splitlines()
    assert (first, loaded) == ("3.0 0", "3.0 1")
    assert another_function == "6.0 0"  # is called
    assert another_constant == "12.0 0"  # is compiled in


def plain(x: float) -> float:
    return x + 1


def test_options_and_versions_count(monkeypatch: pytest.MonkeyPatch) -> None:
    first = stamp(plain, {"nogil": True})
    assert stamp(plain, {"nogil": True}) == first
    assert stamp(plain, {"nogil": True, "fastmath": {"nsz"}}) != first
    assert stamp(plain, {"fastmath": {"reassoc", "nsz"}}) == stamp(plain, {"fastmath": {"nsz", "reassoc"}})
    for module in (kernel_cache.numba, kernel_cache.llvmlite):
        with monkeypatch.context() as patched:
            patched.setattr(module, "__version__", "0.0")
            assert stamp(plain, {"nogil": True}) != first


def test_kernels_of_the_encoder_depend_on_how_rows_are_prefetched() -> None:
    functions = [getattr(one, "py_func", None) or getattr(one, "__wrapped__", None) for one in vars(encoder_kernels).values()]
    prefetching = [one for one in functions if one is not None and "prefetch_row" in one.__code__.co_names]
    assert prefetching
    file = kernel_cache.content(prefetch.__file__)
    assert all(file in set(kernel_cache.needed_parts(one)) for one in prefetching)


def test_kernels_are_kept_with_this_stamp() -> None:
    kernel = search.kernels.push_rows  # type: ignore[attr-defined]
    assert isinstance(kernel._cache, kernel_cache.KernelCache)
    assert kernel._cache._cache_file._source_stamp == stamp(kernel.py_func, {"nogil": True})


def test_where_nothing_can_be_written_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise RuntimeError("cannot cache function: no locator available")

    monkeypatch.setattr(kernel_cache.FunctionCache, "__init__", refused)
    kernel = compile_cached(plain, nogil=True)
    assert kernel(1.0) == 2.0
    assert not sum(kernel.stats.cache_hits.values())


def test_a_read_only_place_leaves_no_folder_behind(tmp_path: Path) -> None:
    """numba looks for places it can write to; here there is none, and the engine makes none."""
    script = (
        "import numba.core.caching as c\n"
        "def refuse(self): raise OSError('read-only')\n"
        "c._CacheLocator.ensure_cache_path = refuse\n"
        "import engine, numpy as np\n"
        "from engine.search.kernels import pair_dots\n"
        "one = np.ones((2, 3), dtype=np.float32); at = np.zeros(1, dtype=np.int64)\n"
        "print(pair_dots(one, one, at, at)[0])"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.stdout.strip() == "3.0", done.stderr
    assert not [path for path in tmp_path.iterdir() if "kernels" in path.name]


@pytest.mark.slow
def test_every_process_finds_what_another_one_compiled() -> None:
    """The stamp of each kernel is the same in all processes, whatever their hashes and addresses are."""
    code = (
        "import importlib, pathlib\n"
        "names = ['.'.join(path.with_suffix('').parts) for path in sorted(pathlib.Path('engine').rglob('kernels.py'))]\n"
        "found = {f'{name}.{key}': value for name in names for key, value in vars(importlib.import_module(name)).items()}\n"
        "caches = {key: getattr(value, '_cache', None) for key, value in found.items()}\n"
        "stamps = {key: cache._cache_file._source_stamp for key, cache in caches.items() if hasattr(cache, '_cache_file')}\n"
        "print(sorted(stamps.items()))"
    )
    said = [
        subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": seed}, check=True, capture_output=True, text=True
        ).stdout
        for seed in ("1", "2")
    ]
    assert len(said[0]) > 1000
    assert said[0] == said[1]
