"""From a data set and a config to a finished run: read, index, train, search, evaluate, write.

:func:`train_run` trains a run or finds it finished (:mod:`engine.pipeline.training`), :func:`update_run` brings one up to a new version of its data
(:mod:`engine.pipeline.updating`). A run's id is a function of what determines its result (:mod:`engine.pipeline.identity`). The same call again
therefore finds the finished run, or resumes the unfinished one.
"""

from __future__ import annotations

from engine.pipeline.events import NOTE, Listener, Phase, event_text
from engine.pipeline.identity import computed_otherwise, device_name, git_commit, make_run_id, peak_rss_mb, versions
from engine.pipeline.making import Outcome
from engine.pipeline.structure import stored_embeddings, stored_model, stored_parameters, trained_similarity
from engine.pipeline.training import train_run
from engine.pipeline.updating import prepare_update, reviews_of, update_config, update_run

__all__ = [
    "NOTE",
    "Listener",
    "Outcome",
    "Phase",
    "computed_otherwise",
    "device_name",
    "event_text",
    "git_commit",
    "make_run_id",
    "peak_rss_mb",
    "prepare_update",
    "reviews_of",
    "stored_embeddings",
    "stored_model",
    "stored_parameters",
    "train_run",
    "trained_similarity",
    "update_config",
    "update_run",
    "versions",
]
