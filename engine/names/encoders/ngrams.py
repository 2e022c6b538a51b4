"""Character n-grams of transliterated names: needs no download, is independent of language, and tolerates spelling."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from engine.names.encoders.base import EncodedNames, register_encoder, romanised
from engine.search import SparseSimilarity

SHORTEST, LONGEST = 2, 4
"""Length of the n-grams, blanks at the ends of words included. Measured in benchmarks/RESULTS.md."""


@register_encoder("ngrams", "character n-grams after transliteration, weighted by TF-IDF; needs no download")
class NgramEncoder:
    """TF-IDF over character n-grams within words, fitted on the names of both graphs: what many names share counts little.

    Rows are sparse and of unit length, so that two names have cosine 1 where they are romanised alike and 0 where they share no n-gram.
    """

    def encode(self, source: Sequence[str], target: Sequence[str]) -> EncodedNames:
        """See :meth:`engine.names.encoders.base.NameEncoder.encode`."""
        from sklearn.feature_extraction.text import TfidfVectorizer  # a second that runs without names need not wait for

        plain = [romanised(name) for name in (*source, *target)]
        if not any(plain):
            rows = sparse.csr_array((len(plain), 1), dtype=np.float32)
        else:
            vectorizer = TfidfVectorizer(analyzer="char_wb", ngram_range=(SHORTEST, LONGEST), lowercase=False, sublinear_tf=True, dtype=np.float32)
            rows = vectorizer.fit([name for name in plain if name]).transform(plain)
        return EncodedNames(SparseSimilarity(rows[: len(source)], rows[len(source) :]))
