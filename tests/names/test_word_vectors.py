"""Word vectors from text files: every flavour of the format, words without a vector, scripts without blanks, damaged files."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import DataError
from engine.names import EncodedNames, get_name_encoder
from engine.names.encoders.base import folded
from engine.names.encoders.word_vectors import known_parts, read_vectors
from tests.effort import examples

PLAIN = "new 1 0 0\nyork 0 1 0\ncity 0 0 1\n"


def encode(path: Path | str, source: tuple[str, ...], target: tuple[str, ...]) -> EncodedNames:
    return get_name_encoder(f"vectors:{path}").encode(source, target)


@pytest.mark.parametrize(
    "content",
    [
        PLAIN.encode(),
        b"3 3\n" + PLAIN.encode(),
        b"\xef\xbb\xbf" + PLAIN.encode(),
        PLAIN.replace("\n", " \r\n").encode(),
        PLAIN.rstrip("\n").encode(),
        PLAIN.replace(" ", "\t").encode(),
        PLAIN.replace("new", "New").replace("york", "YORK").encode(),
        b"".join((PLAIN.encode(), b"\n", b". . . 1 2 3\n")),
        (PLAIN + "NEW 9 9 9\nother 1e-3 -2.5E2 .5\n").encode(),
    ],
    ids=["GloVe", "header", "byte order mark", "CRLF and blanks", "no last newline", "tabs", "case", "spaced word", "repeated"],
)
@pytest.mark.parametrize("zipped", [False, True])
def test_every_flavour_gives_the_same(tmp_path: Path, content: bytes, zipped: bool) -> None:
    path = tmp_path / "words.vec"  # detected by content, not by name
    path.write_bytes(gzip.compress(content) if zipped else content)
    similarity = encode(path, ("New York", "New-York City"), ("york",)).similarity
    expected = [[0.5**0.5], [(1 / 3) ** 0.5]]
    torch.testing.assert_close(similarity.block(slice(0, 2), slice(0, 1)), torch.tensor(expected))


def test_only_words_of_the_names_are_kept_and_long_vectors_do_not_outweigh(tmp_path: Path) -> None:
    path = tmp_path / "words.vec"
    path.write_text("new 100 0\nyork 0 1\nunused 1 1\n")
    table = read_vectors(path, {"new", "york", "unseen"})
    assert table.rows == {"new": 0, "york": 1}
    np.testing.assert_array_equal(table.vectors, [[1, 0], [0, 1]])


def test_words_without_a_vector_are_counted_and_names_of_such_words_count_as_none(tmp_path: Path) -> None:
    path = tmp_path / "words.vec"
    path.write_text(PLAIN)
    encoded = encode(path, ("New Xanten", "Xanten"), ("new",))
    assert encoded.similarity.named()[0].tolist() == [True, False]
    torch.testing.assert_close(encoded.similarity.block(slice(0, 2), slice(0, 1)), torch.tensor([[1.0], [0.0]]))
    finding = encoded.findings[0]
    assert (finding.code, finding.count, finding.examples) == ("words-without-vector", 1, ("xanten",))
    assert "1 of 2 distinct words" in finding.message


def test_scripts_without_blanks_are_cut_into_known_words(tmp_path: Path) -> None:
    known = {"北京", "大学", "北"}.__contains__
    assert known_parts("北京大学", known) == ["北京", "大学"]
    assert known_parts("北方大学", known) == ["北", "大学"]
    assert known_parts("beijing", known) == []
    path = tmp_path / "zh.vec"
    path.write_text("北京 1 0\n大学 0 1\n京大 9 9\n", encoding="utf-8")
    encoded = encode(path, ("北京大学",), ("大学",))
    torch.testing.assert_close(encoded.similarity.block(slice(0, 1), slice(0, 1)), torch.tensor([[0.5**0.5]]))
    assert encoded.findings == ()


def test_one_file_a_graph(tmp_path: Path) -> None:
    (tmp_path / "fr.vec").write_text("pain 1 0\nchat 0 1\n")
    (tmp_path / "en.vec").write_text("pain -1 0\nbread 1 0\ncat 0 1\n")
    similarity = encode(f"{tmp_path / 'fr.vec'},{tmp_path / 'en.vec'}", ("pain", "chat"), ("bread", "cat", "pain")).similarity
    assert similarity.block(slice(0, 2), slice(0, 3)).tolist() == [[1, 0, -1], [0, 1, 0]]
    (tmp_path / "wide.vec").write_text("bread 1 0 0\n")
    with pytest.raises(DataError, match=r"wide.vec: the vectors here have 3 values and those of fr.vec 2; .*aligned to one space"):
        encode(f"{tmp_path / 'fr.vec'},{tmp_path / 'wide.vec'}", ("pain",), ("bread",))


def test_a_comma_may_be_part_of_a_name(tmp_path: Path) -> None:
    path = tmp_path / "a,b.vec"
    path.write_text(PLAIN)
    assert encode(path, ("new",), ("new",)).similarity.pairs(torch.tensor([0]), torch.tensor([0])).item() == pytest.approx(1)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"new 1 0 0\nyork 0 1\n", r":2: expected a word and 3 values separated by blanks, found 2 values"),
        (b"new 1 0 0\nyork 0 1 0 0\n", r":2: expected a word and 3 values .*, found 4 values"),
        (b"2 3\nnew 1 0 0\n\nunused 0\n", r":4: expected a word and 3 values .*, found 1 values"),
        (b"new\n", r":1: expected a word and its values separated by blanks, found 0"),
        (b"new 1 x 0\n", r":1: expected 3 numbers behind the word, found 'x'"),
        (b"new 1 nan 0\n", r":1: expected 3 numbers .*not finite"),
        (b"new 1 1e300 0\n", r":1: expected 3 numbers .*not finite"),
        (b"new 1 0\nyork\xe9 0 1\n", r":2: these bytes are not UTF-8"),
        ("new 1 0\n".encode("utf-16"), r":1: this file is UTF-16"),
        (gzip.compress(PLAIN.encode(), mtime=0)[:20], r": this gzip file is damaged"),
        (b"", r": this file holds no vectors"),
        (b"other 1 0\n", r": no word of the names has a vector here"),
        (b"new 1 0\ryork 0 1\r", r":1: .*line ends of old Mac programs"),
        (b"new 1 0\r" * 200_000, r":1: .*line ends of old Mac programs"),
        (b"x" * (2**20 + 10), r":1: this line is longer than 1 MiB"),
    ],
)
def test_damaged_files_are_reported_in_a_sentence(tmp_path: Path, content: bytes, complaint: str) -> None:
    path = tmp_path / "words.vec"
    path.write_bytes(content)
    with pytest.raises(DataError, match=complaint) as caught:
        encode(path, ("New York",), ("new",))
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_reported_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere.vec: there is no such file"):
        get_name_encoder(f"vectors:{tmp_path / 'nowhere.vec'}")


words = st.text(st.characters(categories=["Ll"], max_codepoint=0x17F), min_size=1, max_size=6).map(str.casefold)
values = st.floats(-100, 100, width=32)


@settings(deadline=None, max_examples=examples(50))
@given(table=st.dictionaries(words, st.tuples(values, values, values), min_size=1, max_size=8), header=st.booleans())
def test_vectors_survive_the_way_through_a_file(
    tmp_path_factory: pytest.TempPathFactory, table: dict[str, tuple[float, float, float]], header: bool
) -> None:
    path = tmp_path_factory.mktemp("vectors") / "words.vec"
    lines = [f"{len(table)} 3"] * header + [" ".join((word, *map(repr, row))) for word, row in table.items()]
    path.write_text("\n".join(lines), encoding="utf-8")
    found = read_vectors(path, {folded(word) for word in table})
    for word, row in table.items():
        vector = np.array(row, dtype=np.float64)
        length = np.linalg.norm(vector)
        if length > 1e-30 and sum(folded(other) == folded(word) for other in table) == 1:
            np.testing.assert_allclose(found.vectors[found.rows[folded(word)]], vector / length, atol=1e-6)
