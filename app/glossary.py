"""The terms of the field in plain words, for ``help=`` wherever one of them appears."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

TERMS: Final[Mapping[str, str]] = {
    "alignment": "Which entities of the two graphs mean the same thing.",
    "attention": "How much weight a message along a relation gets among all messages that an entity receives.",
    "band": "Thirds of the ranks by importance, over both graphs and both directions: high, medium, low.",
    "basic": "Learns from the two graphs' structure and the seed links alone.",
    "calibrated probability": "How often best matches that look like this one are right, fitted on the validation links. It depends on cosine, CSLS, "
    "the margins and ranks from both sides, the Sinkhorn weight, the degrees, and on how many neighbours of the two entities are aligned to each "
    "other (by seed links or as mutual best matches), in number and as a share of all their neighbours. Runs of older versions have "
    "probabilities without the aligned neighbours. Without validation links, probabilities of mutual best matches are estimated from the similarity "
    "alone, by comparing with what these entities find once their match is removed.",
    "channel": "The model starts twice: from an entity's neighbours (entity channel) and from its relations (relation channel); the two are put "
    "side by side.",
    "cosine": "How alike two embeddings point: 1 is the same direction, 0 has nothing in common.",
    "contradiction": "Mutual best matches that the hierarchies rule out together: one class is below the other in one graph and above it in the "
    "other, or two matched classes are below disjoint ones. At most one pair of each contradiction can be correct.",
    "CSLS": "Cross-domain similarity local scaling, which decides: twice the cosine, less how near each of the two entities is to its "
    "nearest in the other graph. So hubs, which are near to everything, do not win everywhere.",
    "conflict": "Several entities of one graph have the same best match in the other; at most one of them can be right.",
    "dangling": "An entity that no known link touches; it may have no counterpart in the other graph.",
    "degree": "Number of triples that an entity takes part in; a self-loop counts twice.",
    "direction": "Forward: what a head hears from its tails. Inverse: what a tail hears from its heads.",
    "divergence": "Jensen-Shannon divergence of how two entities attend to the proxies, in bits: 0 is the same, 1 is nothing in common.",
    "embedding": "The list of numbers in which the model sums up an entity; alike entities point in alike directions.",
    "flip": "An entity that one run matches rightly and another one wrongly.",
    "frequency": "Number of triples with this relation.",
    "functionality": "Distinct heads per triple of a relation: 1 where no head has two tails, so that the head tells the tail.",
    "inverse functionality": "Distinct tails per triple of a relation: 1 where no tail has two heads, so that the tail tells the head.",
    "Hits@1": "Share of the test entities whose true counterpart comes first among the candidates. A tie is no hit.",
    "Hits@10": "Share of the test entities whose true counterpart is among the first ten candidates.",
    "hubness": "That few entities are near to very many others and so are offered as a match again and again.",
    "importance": "How much attention a relation attracts: v · r, the attention vector times the relation's own at unit length (paper, equation 3).",
    "interval": "95 % confidence interval: had other test entities been drawn, the figure would mostly lie within it.",
    "layer": "Messages travel one hop a layer: layer 1 brings what neighbours say, layer 2 what their neighbours say.",
    "literal": "Adds how alike the names are to what the structure says.",
    "margin": "By how much CSLS puts the best match ahead of the runner-up: near 0, the two could as well change places.",
    "McNemar": "A test of whether two runs differ, from the flips alone: were they equally good, as many would be gained as lost.",
    "MRR": "Mean reciprocal rank: 1 where the true counterpart always comes first, one half where it always comes second.",
    "pool": "The candidates that a rank counts: all entities of the other graph, or the test entities only, as the published protocol has it.",
    "probable pair": "The data says that the two probably belong together; counted neither as right nor as wrong.",
    "proxy": "One of a few dozen learned points that both graphs' entities are compared with; what matches must be seen alike by the proxies.",
    "rank": "1 + the number of other candidates that score at least as high.",
    "relative attention": "Attention against an equal share: 1 is what a message would get if all counted alike.",
    "seed link": "A known pair that the model was trained on.",
    "semi": "After training, trains on with pairs that it is sure of as if they were known, in rounds.",
    "test link": "A known pair kept for evaluation: training does not use it, and the run is measured by it.",
    "correspondence": "Two relations correspond as far as one is found wherever the other is, between entities that match. Reversed: the "
    "target's runs from tail to head.",
    "twin": "The most similar relation of the other graph, by what the model has learned of both directions.",
    "validation link": "A known pair kept back to choose settings and to fit probabilities.",
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
    "aligned neighbours": "neighbours aligned to each other",
    "aligned share": "share of the neighbours that is aligned to each other",
}
"""What a calibrated probability depends on, by the engine's names."""


def explain(*terms: str) -> str:
    """Help for one term, or for several below each other.

    Raises:
        KeyError: a term that is not in the glossary.
    """
    if len(terms) == 1:
        return TERMS[terms[0]]
    return "\n\n".join(f"**{term}**: {TERMS[term]}" for term in terms)
