"""What known links say of a pair: the verdicts, what each of them means, and the words for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd

from engine.util.arrays import IntArray

Relation = Literal["seed link", "known validation link", "known test link", "probable pair", "unknown"]
Verdict = Literal["seed link", "known validation link", "known test link", "probable pair", "contradicts a known link", "unknown"]
Known = Literal["seed", "right", "wrong", "probable", "unknown"]

VERDICTS: Final[tuple[Verdict, ...]] = get_args(Verdict)
KNOWN: Final[tuple[Known, ...]] = get_args(Known)
SEED: Final[Relation] = "seed link"
PROBABLE: Final[Relation] = "probable pair"
CONTRADICTION: Final[Verdict] = "contradicts a known link"
ROLES: Final[Mapping[str, Relation]] = {"train": SEED, "valid": "known validation link", "test": "known test link", "unsure": PROBABLE}
HELD_OUT: Final[Mapping[str, str]] = {"known validation link": "validation link", "known test link": "test link"}
"""Links that training does not use, by verdict, in words."""
CERTAIN_LINKS: Final[tuple[Verdict, ...]] = (SEED, "known validation link", "known test link")
KNOWN_OF: Final[Mapping[Verdict, Known]] = {
    SEED: "seed",
    **dict.fromkeys(CERTAIN_LINKS[1:], "right"),
    PROBABLE: "probable",
    CONTRADICTION: "wrong",
    "unknown": "unknown",
}
"""Whether a pair of each verdict is right."""
START_ROUND: Final = 0
"""In place of a round's number: training started from the pair."""
NOT_ADDED: Final = -1
"""In place of a round's number in columns: training used the pair by no prediction."""


def added_words(added: int) -> str:
    """When training first used a pair that no link gives; ``added``: the round, or ``START_ROUND``."""
    return "starting pair" if added == START_ROUND else f"added in round {added}"


def added_cell(added: int) -> str:
    """The same for a narrow column; empty for ``NOT_ADDED``."""
    return "" if added == NOT_ADDED else "start" if added == START_ROUND else f"round {added}"


def status_words(verdict: Verdict, added: int | None) -> str:
    """What is known of a pair, in a few words: what the links say, and whether training used it without a link. The same everywhere."""
    words = HELD_OUT.get(verdict, verdict)
    return words if added is None else f"{words}, {added_words(added)}" if verdict != "unknown" else added_words(added)


def status_sentence(verdict: Verdict, added: int | None) -> str:
    """The same as sentences that leave no doubt about what training used: a link, the model's own prediction, or neither."""
    sentences = {
        SEED: "Seed link: used in training.",
        PROBABLE: "Probable link: the data marks this pair as uncertain. It was not used in training.",
        CONTRADICTION: "A known link gives one of the two entities another counterpart, so this pair is incorrect.",
        "unknown": "No known link covers this pair, and none contradicts it.",
    }
    words = sentences.get(verdict) or f"{HELD_OUT[verdict].capitalize()}: held out for evaluation, not used in training."
    if added is None or verdict == SEED:
        return words
    if added == START_ROUND:
        return f"{words} Training started from this pair, which was derived from the two graphs, not from a known link."
    return f"{words} Round {added} added the pair, as a prediction of the model, to the training pairs."


def verdict_codes(links: pd.DataFrame, source: IntArray, target: IntArray, sizes: tuple[int, int]) -> npt.NDArray[np.int8]:
    """(n,) what the known links say of pairs, as a place in ``VERDICTS``: :meth:`engine.runs.view.RunView.verdict` for whole columns.

    Args:
        links: the run's table of that name.
        source, target: (n,) the pairs.
        sizes: entities of both graphs.
    """
    roles = np.array([VERDICTS.index(ROLES.get(role, "unknown")) for role in links["role"].tolist()], dtype=np.int8)
    ends = links["source"].to_numpy(dtype=np.int64), links["target"].to_numpy(dtype=np.int64)
    keys = ends[0] * sizes[1] + ends[1]
    last = ~pd.Series(keys).duplicated(keep="last").to_numpy()
    recorded = looked_up(keys[last], roles[last], source * sizes[1] + target, -1)
    decisive = last & (roles != VERDICTS.index(PROBABLE))
    linked = [np.zeros(size, dtype=bool) for size in sizes]
    for mark, end in zip(linked, ends, strict=True):
        mark[end[decisive]] = True
    otherwise = np.where(linked[0][source] | linked[1][target], VERDICTS.index(CONTRADICTION), VERDICTS.index("unknown"))
    return np.where(recorded >= 0, recorded, otherwise).astype(np.int8)


def looked_up(keys: IntArray, values: npt.NDArray[Any], wanted: IntArray, missing: int) -> npt.NDArray[Any]:
    """(n,) the value of each wanted key; ``missing`` where there is none. Keys are distinct."""
    if not len(keys):
        return np.full(len(wanted), missing, dtype=values.dtype)
    order = np.argsort(keys, kind="stable")
    places = np.minimum(np.searchsorted(keys, wanted, sorter=order), len(keys) - 1)
    found: npt.NDArray[Any] = np.where(keys[order[places]] == wanted, values[order[places]], missing)
    return found
