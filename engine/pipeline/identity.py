"""What distinguishes a run from others: its id, and what its manifest says of data, versions and machine.

A run's id is a function of what determines its result (data, split, settings, seed, engine version).
"""

from __future__ import annotations

import hashlib
import json
import platform
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any, Final, Protocol

import torch

from engine import __version__
from engine.config import BEFORE, RunConfig
from engine.data import AlignmentTask
from engine.data.knowledge_graph import KnowledgeGraph
from engine.names import absolute_paths, content_digest, may_need_a_rule
from engine.runs import FORMAT_VERSION, Run
from engine.training.device import EXECUTION_OPTIONS
from engine.training.schedule import ONE_BATCH, batch_size
from engine.util.paths import PROJECT

PACKAGES = ("torch", "numpy", "numba", "pandas", "faiss-cpu", "faiss-gpu", "streamlit")
NAMES_RULE: Final = "names rule 2"
"""Of several names the first by language, then by characters. Under the first rule, which had no name, the order of the file decided."""
LATER_OPTIONS: Final[Mapping[tuple[str, str], Any]] = {
    **{("data", name): None for name in ("name_language", "name_language_source", "name_language_target")},
    **{("literal", name): None for name in ("names_source", "names_target")},
    ("semi", "start"): BEFORE["semi"]["start"],
    **{("literal", name): BEFORE["literal"][name] for name in ("synonyms", "value_weight")},
    ("values", "exclude"): None,
}
"""Options that older engines did not have, with what these did: set to that they make no other run."""


class Identified(Protocol):
    """What of a data set makes a run another one: a task, or a summary of it."""

    @property
    def fingerprint(self) -> str: ...

    @property
    def split(self) -> str: ...

    @property
    def own_links(self) -> bool: ...

    @property
    def num_seed_links(self) -> int: ...

    @property
    def several_names(self) -> frozenset[str]: ...


def make_run_id(task: Identified, config: RunConfig) -> str:
    """For example ``basic-s0-3f9c2a71``: variant, seed, and a hash of data, split, settings and engine version."""
    values = with_absolute_paths(config).to_dict()
    values["training"] = {key: value for key, value in values["training"].items() if key not in EXECUTION_OPTIONS}
    if batch_size(config, task.num_seed_links) == ONE_BATCH:  # before it depended on anything, it was this
        values["training"]["batch_size"] = ONE_BATCH
    for reading in ("ontology", "links"):  # the fingerprint of the data says which graphs and links it gave
        del values["data"][reading]
    if values["search"]["index"] == "exact":  # what runs that do not name an index were made with
        del values["search"]["index"]
    if task.own_links and config.semi.pool == "auto":  # before own data had a policy of their own, this meant "test" where there were test links
        values["semi"]["pool"] = "auto: all on own data"
    for section in config.unused:
        del values[section]
    for (section, name), before in LATER_OPTIONS.items():
        if section in values and values[section][name] == before:
            del values[section][name]
    if not values.get("values", True):  # a section that older engines did not have
        del values["values"]
    identity = json.dumps([__version__, FORMAT_VERSION, task.fingerprint, task.split, values, names_identity(task, config)], sort_keys=True)
    return f"{config.method}-s{config.seed}-{hashlib.sha256(identity.encode()).hexdigest()[:8]}"


def with_absolute_paths(config: RunConfig) -> RunConfig:
    """A literal run's settings with their paths from the root of the disk, links followed: one file is one setting, whatever folder it is named from.

    Raises:
        ConfigError: something in them cannot be a path.
    """
    return config.with_values(absolute_paths(config.literal)) if config.variant == "literal" else config


def names_identity(task: Identified, config: RunConfig) -> str:
    """Content of all that a literal run reads names or vectors from, so that a changed file makes another run; and the version of the rule that
    decides between several names of an entity, where it may have to.
    """
    if config.variant != "literal":
        return ""
    return " ".join(filter(None, [content_digest(config.literal), NAMES_RULE if may_need_a_rule(config.literal, task.several_names) else ""]))


def computed_otherwise(run: Run, config: RunConfig) -> tuple[str, ...]:
    """Execution settings that were asked for and that a finished run was not computed with: they make no other run, yet other bits."""
    training = run.manifest.get("training", {})
    wanted: dict[str, Any] = {"threads": config.training.threads}
    wanted |= {"precision": config.training.precision} if config.training.precision != "auto" else {}
    if config.training.device != "auto" and "device" in training:
        was = "cpu" if training["device"] == "cpu" else "cuda"
        training, wanted = {**training, "device": was}, {**wanted, "device": config.training.device}
    differing = {key: value for key, value in wanted.items() if value is not None and key in training and training[key] != value}
    return tuple(f"training.{key} was {training[key]} instead of {value}" for key, value in differing.items())


def describe_data(path: Path, task: AlignmentTask) -> dict[str, Any]:
    return {
        "name": task.name,
        "path": str(path),
        "format": task.format,
        "fingerprint": task.fingerprint,
        "split": task.split,
        "source": describe_graph(task.source),
        "target": describe_graph(task.target),
        "links": {
            "train": len(task.train_links),
            "valid": len(task.valid_links),
            "test": len(task.test_links),
            "unsure": len(task.unsure_links),
        },
        "untested": task.untested,
        "own_links": task.own_links,
        "findings": [asdict(finding) for finding in task.findings],
    }


def describe_graph(graph: KnowledgeGraph) -> dict[str, Any]:
    return {
        "name": graph.name,
        "entities": graph.num_entities,
        "relations": graph.num_relations,
        "triples": graph.num_triples,
        "attributes": graph.num_attributes,
    }


def device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"


def peak_rss_mb() -> float | None:
    """The most resident memory this process has had, in MiB; None where the system does not report it."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (2**20 if sys.platform == "darwin" else 2**10), 1)


def versions() -> dict[str, str]:
    found = {"engine": __version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def git_commit() -> str | None:
    """The commit of the engine's source, with "+" where files were changed since; None outside a checkout."""

    def git(*words: str) -> str:
        return subprocess.run(["git", "-C", str(PROJECT), *words], capture_output=True, text=True, check=True, timeout=10).stdout.strip()

    try:
        return git("rev-parse", "HEAD") + ("+" if git("status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.SubprocessError):
        return None
