from __future__ import annotations

import pickle
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.data.texts import Texts, TextsBuilder, are_among, distinct_words, positions, strings, union

WORDS = st.lists(st.text(max_size=3), max_size=30)
QUICK = settings(deadline=None)


@QUICK
@given(WORDS, WORDS)
def test_is_the_sequence_that_it_was_made_of(words: list[str], others: list[str]) -> None:
    texts = Texts.of(words)
    assert isinstance(texts, Sequence)
    assert list(texts) == words
    assert texts == words
    assert (texts == others) == (words == others)
    assert [texts[at] for at in range(-len(words), len(words))] == words + words
    assert list(texts[3:9]) == words[3:9]
    assert sorted(texts.words) == sorted(set(words))
    assert sorted(texts[2:5].words) == sorted(set(words[2:5]))
    for word in [*words[:5], "not there"]:
        assert (word in texts) == (word in words)
        assert texts.count(word) == words.count(word)
    assert texts.array().to_pylist() == words


@QUICK
@given(WORDS, WORDS)
def test_columns_put_together_and_taken_apart(words: list[str], others: list[str]) -> None:
    joined = Texts.joined(words, Texts.of(others))
    assert list(joined) == words + others
    assert sorted(joined.words) == sorted({*words, *others})
    kept = np.array([len(word) < 2 for word in words], dtype=bool)
    assert list(Texts.of(words).take(kept)) == [word for word in words if len(word) < 2]
    texts = Texts.of(words)
    renamed = texts.renamed([word[:1] for word in texts.words])
    assert list(renamed) == [word[:1] for word in words]
    assert renamed.words.n_unique() == len(renamed.words)


@QUICK
@given(WORDS, WORDS)
def test_sets_of_words_go_by_code_point(words: list[str], others: list[str]) -> None:
    found = union([Texts.of(words), Texts.of(others)])
    assert found.to_list() == sorted({*words, *others})
    assert distinct_words(strings(words)).to_list() == sorted(set(words))
    assert positions(strings(words), found).tolist() == [sorted({*words, *others}).index(word) for word in words]
    distinct = distinct_words(strings(others))
    assert are_among(strings(words), distinct).tolist() == [word in others for word in words]
    assert (positions(strings(words), distinct) < 0).tolist() == [word not in others for word in words]


def test_stretches_share_their_words() -> None:
    builder = TextsBuilder()
    for stretch in (["a", "b"], [], ["b", "", "c"], ["a"]):
        builder.add(strings(stretch))
    texts = builder.texts()
    assert list(texts) == ["a", "b", "b", "", "c", "a"]
    assert len(texts.words) == 4


def test_first_row_that_has_some_word() -> None:
    texts = Texts.of(["x", "y", "z", "y"])
    assert texts.first((texts.words == "y").to_numpy()) == 1
    assert texts.first((texts.words == "w").to_numpy()) is None


def test_one_text_in_many_rows() -> None:
    assert list(Texts.same("name", 3)) == ["name"] * 3
    assert len(Texts.same("name", 0).words) == 0


def test_out_of_range() -> None:
    with pytest.raises(IndexError):
        Texts.of(["a"])[1]


def test_can_be_sent_to_another_process() -> None:
    assert list(pickle.loads(pickle.dumps(Texts.of(["a", "b", "a"])))) == ["a", "b", "a"]
