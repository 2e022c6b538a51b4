"""Character n-grams of transliterated names: needs no download, is independent of language, and tolerates spelling."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy import sparse

from engine.names.encoders.base import EncodedNames, register_encoder, romanised
from engine.search import SparseSimilarity

RowsOf = Callable[[Sequence[str]], sparse.csr_array]
"""Names -> (n, F) rows."""
SHORTEST, LONGEST = 2, 4
"""Length of the n-grams, blanks at the ends of words included. Measured in benchmarks/RESULTS.md."""


@register_encoder("ngrams", "character n-grams after transliteration, weighted by TF-IDF; needs no download")
class NgramEncoder:
    """TF-IDF over character n-grams within words, fitted on the names of both graphs: what many names share counts little.

    Rows are sparse and of unit length, so that two names have cosine 1 where they are romanised alike and 0 where they share no n-gram.
    """

    def encode(self, source: Sequence[str], target: Sequence[str]) -> EncodedNames:
        """See :meth:`engine.names.encoders.base.NameEncoder.encode`."""
        plain = [romanised(name) for name in (*source, *target)]
        rows = self._fit(plain)(plain)
        return EncodedNames(SparseSimilarity(rows[: len(source)], rows[len(source) :]))

    def fitted(self, names: Sequence[str]) -> tuple[RowsOf, int]:
        """Further names as rows like those of the names that the weights are fitted on, and the number of columns."""
        rows_of = self._fit([romanised(name) for name in names])
        return lambda more: rows_of([romanised(name) for name in more]), rows_of([""]).shape[1]

    @staticmethod
    def _fit(plain: Sequence[str]) -> RowsOf:
        """Of romanised names."""
        from sklearn.feature_extraction.text import TfidfVectorizer  # a second that runs without names need not wait for

        if not any(plain):
            return lambda names: sparse.csr_array((len(names), 1), dtype=np.float32)
        vectorizer = TfidfVectorizer(analyzer="char_wb", ngram_range=(SHORTEST, LONGEST), lowercase=False, sublinear_tf=True, dtype=np.float32)
        vectorizer.fit([name for name in plain if name])
        return lambda names: sparse.csr_array(vectorizer.transform(names))
