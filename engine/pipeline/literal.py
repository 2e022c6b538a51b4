"""Names and attribute values of a literal run, which count beside the structure."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from engine.config import LiteralConfig, RunConfig
from engine.data import AlignmentTask
from engine.data.knowledge_graph import SIDES, Finding, Side, empty_attributes
from engine.data.shards import files_folder
from engine.errors import DataError, TrainingError
from engine.names import (
    AllNames,
    EncodedNames,
    Names,
    ValueEvidence,
    all_names,
    choose_weight,
    encode_all,
    gather_names,
    get_name_encoder,
    leak_warning,
    left_out_finding,
    name_attributes,
    require_valid_links,
    value_evidence,
)
from engine.pipeline.events import NOTE, Phase, note_on
from engine.pipeline.making import Making
from engine.pipeline.structure import Structure
from engine.search import LiteralSimilarity, StructuralSimilarity
from engine.training.start import why_not_trained


@dataclass(frozen=True)
class LiteralPart:
    """The names of a literal run, made comparable, and what was noticed about them."""

    names: Names
    source: AllNames
    target: AllNames
    encoded: EncodedNames

    @property
    def several(self) -> bool:
        """Whether some entity has more than one name."""
        return self.source.several or self.target.several

    findings: tuple[Finding, ...]


def literal_part(making: Making) -> LiteralPart:
    """
    Raises:
        ConfigError, DataError: names that cannot be had or compared, or no validation links to choose their weight on.
    """
    task, config = making.task, making.config.literal
    if config.weight is None:
        require_valid_links(task.valid_links)
    own: dict[Side, str | None] = {"source": config.names_source, "target": config.names_target}
    names = gather_names(task, config.names, files_folder(task, making.path), own=own, languages=making.config.data.languages)
    every = [compared_names(task, names, config, side) for side in SIDES]
    encoded = encode_all(get_name_encoder(config.encoder), every[0], every[1])
    return LiteralPart(
        names, every[0], every[1], encoded, (*names.findings, *left_out_finding(*every), *encoded.findings, *leak_warning(task, encoded.similarity))
    )


def literal_part_or_obstacle(making: Making) -> LiteralPart:
    """The same; where no pair could be started from, whatever the names, that is said in place of what the names lack.

    Raises:
        ConfigError, DataError: as :func:`literal_part`.
        TrainingError: there is nothing to start from.
    """
    try:
        return literal_part(making)
    except DataError as error:
        if error.path is None and (obstacle := why_not_trained(making.task, replace(making.config, variant="semi"))):
            raise TrainingError(obstacle) from error
        raise


def compared_names(task: AlignmentTask, names: Names, config: LiteralConfig, side: Side) -> AllNames:
    """All names of a graph's entities where they come from its labels; a file, an attribute or identifiers are used as they are."""
    origin = (config.names_source if side == "source" else config.names_target) or config.names
    graph = task.graph(side)
    return all_names(graph if config.synonyms and origin == "labels" else replace(graph, attributes=empty_attributes()), names.side(side))


def literal_values(making: Making, structure: Structure) -> ValueEvidence | None:
    """The attribute values, as far as they count; their attributes are paired by the seed links and the pairs that training added."""
    task, config = making.task, making.config
    if not config.literal.value_weight:
        return None
    added = [part.pairs for part in (structure.start, *structure.selections[-1:]) if part is not None]
    found = value_evidence(task, np.concatenate([task.train_links, *added]), config.values.excluded | name_attributes(config.literal))
    if not len(found.features):
        return None
    for finding in found.leaks:
        making.on_event(Phase(NOTE, note_on(finding)))
    return found


def with_literals(
    similarity: StructuralSimilarity, literal: LiteralPart, values: ValueEvidence | None, task: AlignmentTask, config: RunConfig
) -> tuple[LiteralSimilarity, dict[str, Any]]:
    """Structure, names and values together, and what the manifest says of it."""
    names, weight = literal.encoded.similarity, config.literal.weight
    note: dict[str, Any] = {"names": literal.names.origin, "encoder": config.literal.encoder, "several_names": literal.several}
    if weight is None:
        choice = choose_weight(similarity, names, task.valid_links, k=config.search.csls_k, train_links=task.train_links, seed=config.seed)
        weight, note["choice"] = choice.weight, choice.to_dict()
    leaks = () if values is None else values.leaks
    note |= {"weight": weight, "findings": [asdict(finding) for finding in (*literal.findings, *leaks)]}
    if values is None:
        return LiteralSimilarity(similarity, names, weight), note
    note["value_weight"] = config.literal.value_weight
    return LiteralSimilarity(similarity, names, weight, values.similarity, config.literal.value_weight), note
