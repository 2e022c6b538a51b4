"""A run's id: what changes it and what does not."""

from __future__ import annotations

import dataclasses

from engine.config import RunConfig
from engine.pipeline import make_run_id


def test_settings_that_older_engines_did_not_have_keep_their_run_ids() -> None:
    """The ids of runs that were made before training could start from facts, before synonyms and before values were compared."""
    data = Identity("f" * 64, "random 30/70, seed 0", own_links=False, several_names=frozenset())
    chosen = {"training.batch_size": 1024, "semi.start": "seeds", "semi.rounds": 4, "semi.selection": "propagation"}
    before = RunConfig(variant="literal").with_values(chosen | {"literal.synonyms": False, "literal.value_weight": 0.0})
    values = before.to_dict()
    del values["semi"]["start"], values["literal"]["synonyms"], values["literal"]["value_weight"], values["values"]
    assert RunConfig.from_dict(values) == before
    ids = {
        make_run_id(data, before.with_values(changed))
        for changed in ({}, {"semi.start": "auto"}, {"literal.synonyms": True}, {"literal.value_weight": 1.0}, {"values.exclude": "id"})
    }
    assert len(ids) == 5
    assert make_run_id(data, before) == "literal-s0-fadae654"


def test_runs_whose_batches_are_as_before_keep_their_ids() -> None:
    """Before the size of batches depended on the number of seed links, it was 1,024."""
    few, many = (Identity("f" * 64, "given", own_links=False, several_names=frozenset(), num_seed_links=links) for links in (1024, 1025))
    given = RunConfig().with_values({"training.batch_size": 1024})
    semi = RunConfig(variant="semi")
    assert make_run_id(many, semi) == make_run_id(many, semi.with_values({"training.batch_size": 1024}))
    assert make_run_id(few, RunConfig()) == make_run_id(few, given) == make_run_id(many, given) != make_run_id(many, RunConfig())


@dataclasses.dataclass(frozen=True)
class Identity:
    """What of a data set makes a run another one."""

    fingerprint: str
    split: str
    own_links: bool
    several_names: frozenset[str]
    num_seed_links: int = 600
