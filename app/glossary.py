"""The terms of the field in plain words, for ``help=`` wherever one of them appears."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from engine.runs.view import UNCHECKED

TERMS: Final[Mapping[str, str]] = {
    "alignment": "The pairs of entities of the two graphs that denote the same thing.",
    "attention": "Attention weight: the share of one message among all messages that an entity receives from its neighbours. The weights "
    "of an entity add up to 1.",
    "band": "Relations ranked by importance, over both graphs and both directions, in three equal parts: high, medium, low.",
    "basic": "Learns from the structure of the two graphs and the seed links only.",
    "calibrated probability": "The probability that the pair is correct, fitted on links held out from training: the validation links, or on your "
    "own data with too few of them, the test links as well. Inputs: cosine, CSLS, margins and ranks from both sides, "
    "the Sinkhorn weight, the degrees, and the aligned neighbours (number and share). Runs of older versions do not use the aligned neighbours. "
    "With fewer than 50 such links, only mutual best matches get a probability, estimated from the similarity alone "
    "by comparing each match with the best candidate that is left when the match is removed. A run of structure alone that trained on its own "
    "selected pairs gets none.",
    "channel": "The model has two channels: the entity channel aggregates an entity's neighbours, the relation channel its relations. "
    "Their outputs are concatenated.",
    "cosine": "Cosine similarity of two embeddings: 1 is the same direction, 0 is unrelated.",
    "contradiction": "Mutual best matches that the hierarchies rule out together: one class is below the other in one graph and above it in the "
    "other, or two matched classes are below disjoint ones. At most one pair of each contradiction can be correct.",
    "CSLS": "Cross-domain similarity local scaling, the score that ranks candidates: twice the cosine, minus the mean similarity of each of the two "
    "entities to its nearest entities in the other graph. This keeps hubs, which are similar to everything, from winning everywhere.",
    "conflict": "Several entities of one graph have the same best match in the other; at most one of them can be correct.",
    "dangling": "An entity without a known link; it may have no counterpart in the other graph.",
    "degree": "Number of triples with the entity as head or tail; a self-loop counts twice.",
    "direction": "Forward: messages from tail to head. Inverse: messages from head to tail.",
    "divergence": "Jensen–Shannon divergence between the proxy attention of two entities, in bits: 0 is identical, 1 is disjoint.",
    "embedding": "The vector by which the model represents an entity; similar entities have vectors of similar direction.",
    "changed prediction": "A test entity that one run matches correctly and another run incorrectly.",
    "estimated probability": "The probability that the pair is correct, estimated by comparing each mutual best match with the best candidate that "
    f"is left when the match is removed. {UNCHECKED}",
    "frequency": "Number of triples with this relation.",
    "functionality": "Distinct heads per triple of a relation: 1 if no head has two tails, so that the head determines the tail.",
    "inverse functionality": "Distinct tails per triple of a relation: 1 if no tail has two heads, so that the tail determines the head.",
    "Hits@1": "Share of the test entities whose true counterpart is ranked first among the candidates. A tie is not a hit.",
    "Hits@10": "Share of the test entities whose true counterpart is ranked among the first ten candidates.",
    "hubness": "A few entities (hubs) are similar to very many others and would be the best match of too many. CSLS corrects for this.",
    "importance": "Relation importance v · r: the attention vector times the relation's unit vector (paper, equation 3). Higher values "
    "give higher attention weights.",
    "interval": "95% confidence interval: the range of values to expect with other test entities. n is the number of test entities.",
    "layer": "Messages travel one hop per layer: layer 1 aggregates the neighbours, layer 2 also the neighbours of the neighbours.",
    "literal": "Adds the similarity of names and other values to that of the structure.",
    "margin": "CSLS of the best match minus CSLS of the runner-up. Near 0, the two are hardly distinguishable.",
    "McNemar": "A test of whether two runs differ, based on the changed predictions: equally good runs would gain as many as they lose.",
    "MRR": "Mean reciprocal rank of the true counterpart: 1 if it is always ranked first, 0.5 if always second.",
    "pool": "The candidates that are ranked: all entities of the other graph, or only the test entities, as in the published protocol.",
    "probable link": "A link that the data marks as uncertain; counted neither as correct nor as incorrect.",
    "proxy": "One of a few dozen learned vectors that the entities of both graphs are compared with. Matching entities should have "
    "similar proxy attention.",
    "rank": "1 + the number of other candidates with an equal or higher score.",
    "relative attention": "Attention weight divided by the uniform weight: 1 if all messages of an entity are weighted equally.",
    "seed link": "A known link that training used.",
    "semi": "Semi-supervised: after the basic training, adds its confident predictions as training pairs, in rounds. "
    "Starting pairs are those that names, values or facts imply before any training.",
    "test link": "A known link held out for evaluation: training does not use it; accuracy is measured on it.",
    "correspondence": "Two relations correspond if one connects the matches of the entities that the other connects. Reversed: the "
    "target relation runs from tail to head.",
    "relation counterpart": "The most similar relation of the other graph, by the learned vectors of both directions.",
    "validation link": "A known link held out to choose settings and to fit probabilities.",
}

PROBABILITY_FEATURES: Final[Mapping[str, str]] = {
    "similarity": "cosine",
    "csls": "CSLS",
    "source margin": "margin, from the source entity",
    "target margin": "margin, from the target entity",
    "source rank": "rank, from the source entity",
    "target rank": "rank, from the target entity",
    "plan weight": "Sinkhorn weight",
    "source degree": "degree of the source entity",
    "target degree": "degree of the target entity",
    "aligned neighbours": "aligned neighbours",
    "aligned share": "share of neighbours that are aligned",
}
"""What a calibrated probability depends on, by the engine's names."""


def probability_term(estimated: bool) -> str:
    """The term for the probabilities of a run, by whether they are estimated without held-out links."""
    return "estimated probability" if estimated else "calibrated probability"


def explain(*terms: str) -> str:
    """Help for one term, or for several below each other.

    Raises:
        KeyError: a term that is not in the glossary.
    """
    if len(terms) == 1:
        return TERMS[terms[0]]
    return "\n\n".join(f"**{term}**: {TERMS[term]}" for term in terms)
