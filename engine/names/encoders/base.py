"""The interface of name encoders, and their registry."""

from __future__ import annotations

import importlib
import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from anyascii import anyascii
from torch import Tensor

from engine.data.knowledge_graph import Finding
from engine.errors import ConfigError
from engine.names.specs import PathsOf, Spec, no_path
from engine.search import NameSimilarity, StructuralSimilarity, normalise_rows
from engine.util.registry import Registry

# Names as plain text: one spelling for what readers take to be the same.

_WORD = re.compile(r"\w+")
_NOT_ASCII_WORD = re.compile(r"[^0-9a-z]+")
UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
"""Letters of scripts that do not put blanks between words: Thai, Lao, Burmese, Khmer, kana, Han."""


def folded(name: str) -> str:
    """Compatibility forms and case removed (NFKC, case folding), the script kept."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def words(name: str) -> list[str]:
    """The folded words of a name, without punctuation; text of scripts without blanks stays together."""
    return _WORD.findall(folded(name).replace("_", " "))


def romanised(name: str) -> str:
    """Folded, transliterated to ASCII letters and digits with single blanks: 'Žurovići' -> 'zurovici', '北京' -> 'beijing'.

    A name of nothing but punctuation is kept unchanged: it is a name all the same.
    """
    plain = _NOT_ASCII_WORD.sub(" ", anyascii(folded(name)).lower()).strip()
    return plain or folded(name).strip()


Encoder = TypeVar("Encoder", bound=type)
DenseEncode = Callable[[list[str]], npt.NDArray[np.float32]]
EXTRAS_FILE = "requirements-extras.txt"


@dataclass(frozen=True)
class EncodedNames:
    """Names made comparable.

    Attributes:
        similarity: (E1, E2) cosines of the names; rows of entities without a (usable) name are zero.
        findings: what was noticed on the way.
    """

    similarity: NameSimilarity
    findings: tuple[Finding, ...] = field(default=())


class NameEncoder(Protocol):
    """Turns names into vectors whose inner products say how alike they are."""

    def encode(self, source: Sequence[str], target: Sequence[str]) -> EncodedNames:
        """Encode the names of both graphs.

        Args:
            source: E1 names, "" where there is none.
            target: E2 names, the same.

        Raises:
            DataError: a file that the encoder needs is damaged.
            ConfigError: something that the encoder needs is not there.
        """
        ...


@dataclass(frozen=True)
class EncoderKind:
    """A kind of name encoder.

    Attributes:
        make: called with the text after the colon ("" where there is none).
        argument: what that is, for people; "" where the encoder takes none.
        description: one sentence.
        paths: which paths the argument holds; visitors of the app may name only some, and their content makes a run another one.
    """

    make: Callable[[str], NameEncoder]
    argument: str
    description: str
    paths: PathsOf


NAME_ENCODERS: Registry[EncoderKind] = Registry("name encoder", lambda name: spelled(name))


def register_encoder(name: str, description: str, argument: str = "", paths: PathsOf | None = None) -> Callable[[Encoder], Encoder]:
    """Class decorator: makes an encoder available as ``name`` or ``name:argument``. The class is called with the argument if it takes one.

    Args:
        name, description, argument: of :class:`EncoderKind`.
        paths: which paths the argument holds (:mod:`engine.names.specs`); required where there is an argument.

    Raises:
        ValueError: an argument whose paths are not declared.
    """
    if argument and paths is None:
        raise ValueError(f"the name encoder '{name}' takes an argument: declare which paths it holds (engine.names.specs)")

    def kind(cls: Encoder) -> EncoderKind:
        return EncoderKind(lambda text: cls(text) if argument else cls(), argument, description, paths or no_path)

    return NAME_ENCODERS.register(name, kind)


def get_name_encoder(spec: str) -> NameEncoder:
    """The encoder that ``name`` or ``name:argument`` describes.

    Raises:
        ConfigError: no encoder of this name; an argument missing or too much; a package that it needs is not installed.
    """
    parsed = Spec.parse(spec)
    name, argument = parsed.kind, parsed.argument
    found = NAME_ENCODERS.named(name)
    if bool(argument) != bool(found.argument):
        what = "takes nothing behind a colon" if argument else "needs something behind a colon"
        raise ConfigError(f"the name encoder '{name}' {what}; write --set literal.encoder={spelled(name)}.")
    return found.make(argument)


def spelled(name: str) -> str:
    """'vectors' -> 'vectors:FILE[,FILE]'."""
    argument = NAME_ENCODERS[name].argument
    return f"{name}:{argument}" if argument else name


def optional_module(module: str, package: str, encoder: str) -> Any:
    """A module of an optional package.

    Raises:
        ConfigError: it is not installed, or does not load; says the one command that installs it.
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        raise ConfigError(
            f"the name encoder '{encoder}' needs the package {package}, which is not installed; run: pip install -r {EXTRAS_FILE}"
        ) from None


def encode_distinct(source: Sequence[str], target: Sequence[str], encode: DenseEncode) -> StructuralSimilarity:
    """Names of both graphs by one dense encoder; see :func:`dense_rows`."""
    rows = dense_rows([*source, *target], encode)
    return StructuralSimilarity(rows[: len(source)], rows[len(source) :])


def dense_rows(names: Sequence[str], encode: DenseEncode, width: int = 1) -> Tensor:
    """(E, D) rows of unit length, zero for entities without a name. Each distinct name is encoded once.

    Args:
        names: E names, "" where there is none.
        encode: u distinct names, none of them empty -> (u, D) vectors; not called where there is no name at all.
        width: D of the zero rows in that case.
    """
    distinct = sorted({*names} - {""})
    vectors = torch.from_numpy(np.ascontiguousarray(encode(distinct), dtype=np.float32)) if distinct else torch.zeros(0, width)
    table = torch.cat([normalise_rows(vectors), torch.zeros(1, vectors.shape[1])])  # the last row is for entities without a name
    position = {name: row for row, name in enumerate(distinct)}
    return table[torch.tensor([position.get(name, len(distinct)) for name in names], dtype=torch.int64)]
