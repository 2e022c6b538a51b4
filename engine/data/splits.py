"""Dividing known links into seeds, validation and test: as the data gives it, or drawn with the seed.

Links are handled as sorted sets of keys (source index times the number of target entities, plus target index), so a draw depends on the links and
the seed alone, not on the order of lines in a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from engine.config import DataConfig
from engine.data.knowledge_graph import Finding
from engine.data.readers.base import Part
from engine.errors import DataError
from engine.util.arrays import BoolArray, IntArray, distinct

DEFAULT_TRAIN_RATIO = 0.3
"""Of a benchmark's links: what DBP15K and the papers on it use."""
ALL_TRAIN_BELOW = 500
"""Up to this number, all known links of a user's own train by default; of more, a test of a fifth costs little accuracy."""
OWN_TRAIN_RATIO = 0.8
WORTH_A_TEST = 150
"""From this number of known links on, a test of a fifth (30 links) is informative: with a user's own links, all or four fifths may train."""


ALL_TRAIN: Final = "all known links train"
DRAWN: Final = "random "
TOGETHER: Final = "by connected links"
"""In a split's description, and so in a run's identity: all links of an entity are in one part. Only links that are not one to one are divided so;
runs of older versions, which drew each link by itself, keep their own description."""


def is_drawn(description: str) -> bool:
    """Whether no file divided the links, by a split's description."""
    return description.startswith((ALL_TRAIN, DRAWN))


@dataclass(frozen=True)
class Split:
    """Sorted keys of links by part, disjoint, with words for people."""

    train: IntArray
    valid: IntArray
    test: IntArray
    unsure: IntArray
    description: str
    findings: tuple[Finding, ...] = ()


def divide(parts: Mapping[Part, IntArray], given: str, config: DataConfig, seed: int, folder: Path, *, own: bool = False, width: int = 0) -> Split:
    """Divide the links as the data and the options say.

    Args:
        parts: sorted, distinct keys by part.
        given: the name of the data's own split; used where there is a ``train`` part and ``data.train_ratio`` is not set.
        config: ratios, and what to do with given validation links.
        seed: draws the split and what is held out.
        folder: for messages.
        own: the links are a user's own and no benchmark's: without a split or a ratio, all or most of them train.
        width: target entities, by which keys are taken apart. Where links are not one to one, a draw keeps all links of an entity together; 0: not.

    Without any links nothing is divided, and a ``train`` part that is there and empty stays so: names and values may still give a start
    (:mod:`engine.training.start`).

    Raises:
        DataError: no links are left to train on, and ``data.train_ratio`` does not ask for that.
    """
    sets = {part: parts.get(part, _none()) for part in ("all", "train", "valid", "test", "unsure")}
    known = _union(*(sets[part] for part in ("all", "train", "valid", "test")))
    if not len(known):
        return UNDIVIDED if not len(sets["unsure"]) else replace(UNDIVIDED, unsure=sets["unsure"])
    if "train" in parts and config.train_ratio is None:
        split = _given(sets, "test" in parts, given, config)
    elif not parts.keys() & {"all", "train"} and config.train_ratio is None:
        raise DataError(
            "all links are marked as test or validation, none as train; mark some as train, or draw a split (data.train_ratio).", path=folder
        )
    else:
        split = _drawn(known, sets["unsure"], config, seed, own, width)
    stays_empty = "train" in parts and not len(sets["train"]) and config.train_ratio is None
    if not len(split.train) and config.train_ratio != 0 and not stays_empty:
        raise DataError(_no_seeds(config, len(known)), path=folder)
    return split if len(split.valid) else _hold_out(split, config, seed, width)


def _given(sets: Mapping[str, IntArray], has_test: bool, given: str, config: DataConfig) -> Split:
    """Training before validation before test: a pair counts once, in the first part that has it. Without a test part, what is left is the test."""
    train = sets["train"]
    valid = _without(sets["valid"], train)
    listed = sets["test"] if has_test else sets["all"]
    test = _without(listed, np.concatenate([train, valid]))
    rest = _without(sets["all"], np.concatenate([train, valid, test]))
    findings = _overlaps(len(sets["valid"]) - len(valid), len(sets["test"]) - len(_without(sets["test"], np.concatenate([train, valid]))), len(rest))
    description = given
    if config.use_valid_links == "train" and len(valid):
        train, valid, description = _union(train, valid), _none(), f"{given}, validation links used as seeds"
    unsure = _without(_union(sets["unsure"], rest), np.concatenate([train, valid, test]))
    return Split(train, valid, test, unsure, description, findings)


def _overlaps(in_valid: int, in_test: int, outside: int) -> tuple[Finding, ...]:
    found = []
    if in_valid:
        message = f"{in_valid:,} validation links are training links too; they were taken out of the validation."
        found.append(Finding("train-valid-leakage", "warning", message, in_valid, advice="Keep the parts of a split apart."))
    if in_test:
        message = f"{in_test:,} links for training or validation were listed for the test too; they were taken out of the test."
        found.append(Finding("train-test-leakage", "warning", message, in_test, advice="Nothing to do here; figures made without this are too good."))
    if outside:
        message = f"{outside:,} known links are in no part of the given split; they count neither as right nor as wrong."
        found.append(Finding("links-outside-split", "info", message, outside, advice="Set data.train_ratio to draw a split of all links."))
    return tuple(found)


def _drawn(known: IntArray, unsure: IntArray, config: DataConfig, seed: int, own: bool, width: int) -> Split:
    if own and config.train_ratio is None and len(known) < ALL_TRAIN_BELOW:
        return Split(known, _none(), _none(), _without(unsure, known), ALL_TRAIN)
    default = OWN_TRAIN_RATIO if own else DEFAULT_TRAIN_RATIO
    ratio = default if config.train_ratio is None else config.train_ratio
    size = max(round(ratio * len(known)), 1 if ratio > 0 else 0)
    description = f"{DRAWN}{100 * ratio:g}/{100 - 100 * ratio:g}"
    generator = np.random.default_rng([seed, 1])
    if (groups := link_groups(known, width)) is not None:
        drawn = draw_groups(groups, size, generator)
        finding = _together(groups, int(drawn.sum()))
        words = f"{description} {TOGETHER}, seed {seed}"
        return Split(known[drawn], _none(), known[~drawn], _without(unsure, known), words, (finding,))
    shuffled = generator.permutation(known)
    description = f"{description}, seed {seed}"
    return Split(np.sort(shuffled[:size]), _none(), np.sort(shuffled[size:]), _without(unsure, known), description)


def link_groups(keys: IntArray, width: int) -> IntArray | None:
    """(n,) the connected component of each link, where entities are nodes; None where the links are one to one, or ``width`` is 0."""
    if not width or not len(keys):
        return None
    sources, targets = np.divmod(keys, width)
    (left, source), (right, target) = (np.unique(ends, return_inverse=True) for ends in (sources, targets))
    if len(left) == len(keys) == len(right):
        return None
    from scipy.sparse import coo_matrix  # slow to load, and only for such links
    from scipy.sparse.csgraph import connected_components

    size = len(left) + len(right)
    edges = coo_matrix((np.ones(len(keys), dtype=np.int8), (source, target + len(left))), shape=(size, size))
    found: IntArray = connected_components(edges, directed=False)[1][source].astype(np.int64)
    return found


def draw_groups(groups: IntArray, size: int, generator: np.random.Generator) -> BoolArray:
    """(n,) which links are drawn: whole groups in a random order, each that still fits; at least one group where ``size`` is not 0."""
    sizes = np.bincount(groups)
    chosen = np.zeros(len(sizes), dtype=bool)
    left = size
    for group in generator.permutation(len(sizes)).tolist():
        if sizes[group] <= left:
            chosen[group] = True
            left -= int(sizes[group])
    if size and not chosen.any():
        chosen[int(sizes.argmin())] = True
    drawn: BoolArray = chosen[groups]
    return drawn


def _together(groups: IntArray, drawn: int) -> Finding:
    sizes = np.bincount(groups)
    message = (
        f"Links are not one to one, so the split keeps all links of an entity together: {len(sizes):,} groups of connected links, "
        f"the largest of {int(sizes.max()):,}; {drawn:,} of {len(groups):,} links train."
    )
    return Finding("split-by-components", "info", message, len(sizes), advice="Nothing to do: no entity is trained on and tested.")


def _hold_out(split: Split, config: DataConfig, seed: int, width: int = 0) -> Split:
    """Take validation links out of the training links, where they are wanted and the data gives none; at least one seed stays."""
    size = min(round(config.valid_ratio * len(split.train)), len(split.train) - 1)
    if size < 1:
        return split
    generator = np.random.default_rng([seed, 2])
    description = f"{split.description}; {100 * config.valid_ratio:g} % of the training links held out"
    if (groups := link_groups(split.train, width)) is not None:
        drawn = draw_groups(groups, size, generator)
        words = f"{description} {TOGETHER}, seed {seed}"
        return split if drawn.all() else replace(split, train=split.train[~drawn], valid=split.train[drawn], description=words)
    shuffled = generator.permutation(split.train)
    description = f"{description}, seed {seed}"
    return Split(np.sort(shuffled[size:]), np.sort(shuffled[:size]), split.test, split.unsure, description, split.findings)


def _no_seeds(config: DataConfig, known: int) -> str:
    if config.train_ratio is not None:
        return f"none of the {known:,} links is left to train on; set data.train_ratio above 0 (now {config.train_ratio:g})."
    return f"none of the {known:,} links is a training link; add some, or let them be drawn (data.train_ratio)."


def _union(*parts: IntArray) -> IntArray:
    """Sorted, distinct."""
    return distinct(np.concatenate(parts))


def _without(keys: IntArray, others: IntArray) -> IntArray:
    """The keys, sorted and distinct as they are, that are not among the others, which are distinct."""
    return np.setdiff1d(keys, others, assume_unique=True)


def _none() -> IntArray:
    return np.empty(0, dtype=np.int64)


UNDIVIDED = Split(_none(), _none(), _none(), _none(), "no links")
