from __future__ import annotations

import gzip
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from engine.data import READERS, load_task
from engine.data.assembly import BYTES_A_CHARACTER, BYTES_A_ROW, expected_memory
from engine.data.readers.rdf import parse
from engine.data.rows import read_tabbed
from engine.data.tabular import TRIPLE_ROLES, read_table
from engine.errors import DataError
from engine.training import device as execution
from engine.util import memory
from engine.util.memory import MIB
from tests.data.writers import WRITERS, as_parquet, put, small_sample, tabbed

glibc = pytest.mark.skipif(sys.platform != "linux" or platform.libc_ver()[0] != "glibc", reason="another C library's allocator cannot be asked")


def test_a_containers_limit_counts(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("3000\n")
    (tmp_path / "memory.current").write_text("1000\n")
    assert memory._container_memory(tmp_path) == 2000
    (tmp_path / "memory.stat").write_text("anon 300\nfile 650\ninactive_file 600\nactive_file 50\n")
    assert memory._container_memory(tmp_path) == 2600  # files that were read give way
    (tmp_path / "memory.stat").write_text("inactive_file 6000\n")
    assert memory._container_memory(tmp_path) == 3000
    (tmp_path / "memory.max").write_text("max\n")
    assert memory._container_memory(tmp_path) is None
    assert memory._container_memory(tmp_path / "none") is None
    assert (memory.available_memory() or 1) > 0


def test_the_older_version_of_control_groups(tmp_path: Path) -> None:
    group = tmp_path / "memory"
    group.mkdir()
    (group / "memory.limit_in_bytes").write_text("3000\n")
    (group / "memory.usage_in_bytes").write_text("2900\n")
    (group / "memory.stat").write_text("inactive_file 1\ntotal_inactive_file 2000\nhierarchical_memory_limit 3000\n")
    assert memory._container_memory(tmp_path) == 2100
    (group / "memory.limit_in_bytes").write_text("9223372036854771712\n")
    assert memory._container_memory(tmp_path) is None


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({"cpu.max": "150000 100000\n"}, 1.5),
        ({"cpu.max": "max 100000\n"}, None),
        ({"cpu.max": "nonsense\n"}, None),
        ({"cpu/cpu.cfs_quota_us": "200000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 2.0),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, None),
        ({}, None),
    ],
)
def test_a_share_of_the_processors_is_seen(files: dict[str, str], cores: float | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert execution.cpu_quota(tmp_path) == cores
    monkeypatch.setattr(execution, "cpu_quota", lambda: cores)
    monkeypatch.setattr(execution.os, "sched_getaffinity", lambda _: set(range(64)), raising=False)
    assert execution.usable_cores() == (64 if cores is None else int(cores))
    monkeypatch.setattr(execution, "cpu_quota", lambda: 0.25)
    assert execution.usable_cores() == 1


@pytest.mark.parametrize("form", WRITERS)
@pytest.mark.parametrize("gz", [False, True])
def test_what_cannot_fit_is_refused_before_it_is_read(form: str, gz: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader, write = WRITERS[form]
    write(tmp_path, small_sample(), gz=gz)
    needed = expected_memory(READERS[reader].files(tmp_path))
    assert needed > BYTES_A_ROW * 12 / MIB
    monkeypatch.setattr(memory, "available_memory", lambda: needed / 2)
    monkeypatch.setattr(type(READERS[reader]), "read", lambda *_: pytest.fail("was read"))
    with pytest.raises(DataError, match=r"reading this data set needs about [\d.]+ GiB of memory, and [\d.]+ GiB are free; 50% of it would fit"):
        load_task(tmp_path)


def test_where_it_is_unknown_how_much_there_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    WRITERS["openea"][1](tmp_path, small_sample())
    monkeypatch.setattr(memory, "available_memory", lambda: None)
    assert load_task(tmp_path).source.num_entities == 6


@pytest.mark.parametrize("form", ["triples", "triples.csv", "triples.parquet"])
def test_reading_stops_before_the_machine_swaps(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [("head", "relation", "tail"), ("a", "r", "b")]
    text = "\n".join(",".join(row) for row in rows)
    path = put(tmp_path / form, as_parquet(rows[0], rows[1:]) if form.endswith("parquet") else text if form.endswith("csv") else tabbed(rows))
    monkeypatch.setattr(memory, "available_memory", lambda: memory.KEPT_FREE - 1)
    with pytest.raises(DataError, match=rf"{form}: out of memory while reading this file \(255 MiB free\)"):
        read_tabbed(path, rows[0]) if form == "triples" else read_table(path, TRIPLE_ROLES)


@pytest.mark.parametrize("gz", [False, True])
def test_rows_are_estimated_from_the_beginning_of_a_file(gz: bool, tmp_path: Path) -> None:
    text = tabbed([(f"entity{number * 7919 % 100_003}", f"relation{number % 17}", f"entity{number}") for number in range(50_000)])
    path = put(tmp_path / "rows", text, gz=gz)
    exact = (50_000 * BYTES_A_ROW + len(text) * BYTES_A_CHARACTER) / MIB
    assert expected_memory([path]) == pytest.approx(exact, rel=0.2)


@glibc
def test_freed_memory_goes_back_to_the_system() -> None:
    """In a process of its own: many pieces, all freed but the last one, which keeps the heap from shrinking by itself."""
    script = (
        "from engine.util.memory import give_back\n"
        "def resident(): return int(next(l for l in open('/proc/self/status') if l.startswith('VmRSS')).split()[1]) >> 10\n"
        "pieces = [bytes(60_000) + b'x' for _ in range(2000)]\n"
        "del pieces[:-1]\n"
        "before = resident(); give_back(); print(before - resident())"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert int(done.stdout) > 80


@glibc
def test_freed_memory_is_kept_only_while_that_is_wanted() -> None:
    """In a process of its own: pages that are asked for again are no new ones."""
    script = (
        "import resource\n"
        "from engine.util.memory import freed_memory_kept, give_back\n"
        "def faults():\n"
        "    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt\n"
        "    for _ in range(5): del (piece := bytearray(40 << 20))[0:1]\n"
        "    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before\n"
        "usual = faults()\n"
        "with freed_memory_kept(): faults(); kept = faults()\n"
        "give_back(); print(usual, kept, faults())"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    usual, kept, after = map(int, done.stdout.split())
    assert kept < usual / 2
    assert after > kept


def rdf_texts(statements: int) -> dict[str, str]:
    """The same statements in four syntaxes: a line each, several a line, as elements, all in one line."""
    base, rows = "http://example.org/resource/", [(f"Some_entity_{k % 97}", f"relation_{k % 7}", f"Some_entity_{k % 89}") for k in range(statements)]
    lines = [f"<{base}{head}> <{base}{relation}> <{base}{tail}> ." for head, relation, tail in rows]
    elements = [f'<r:Description r:about="{base}{h}"><p:{r} r:resource="{base}{t}"/></r:Description>' for h, r, t in rows]
    namespaces = f'xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:p="{base}"'
    return {
        "a.nt": "\n".join(lines) + "\n",
        "a.ttl": f"@prefix : <{base}> .\n" + " ".join(f":{head} :{relation} :{tail} ." for head, relation, tail in rows),
        "a.rdf": f"<r:RDF {namespaces}>{''.join(elements)}</r:RDF>",
        "a.trig": " ".join(lines),
    }


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", ["a.nt", "a.ttl", "a.rdf", "a.trig"])
def test_the_strings_of_rdf_count_in_what_reading_it_takes(name: str, packed: bool, tmp_path: Path) -> None:
    text = rdf_texts(3000)[name]
    path = tmp_path / (f"{name}.gz" if packed else name)
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    statements = list(parse(path))
    assert len(statements) == 3000
    cells = [cell for one in statements for cell in (one.subject.value, one.predicate.value, one.object.value)]
    held = (sum(sys.getsizeof(cell) + 8 for cell in cells) + 2 * len(text)) / MIB
    assert 0.9 * held <= expected_memory([path]) <= 3 * held
