"""An example of each answer, for the description of the service; a test compares their fields with those of real answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

SOURCE: Final = "http://one.example/Sweden"
TARGET: Final = "http://two.example/Q34"
RUN: Final = "europe/basic-s0-434c61ae"
LEFT: Final = {"side": "source", "uri": SOURCE, "label": "Sweden", "degree": 21}
RIGHT: Final = {"side": "target", "uri": TARGET, "label": "Schweden", "degree": 18}
MATCH: Final = {
    "rank": 1,
    "uri": TARGET,
    "label": "Schweden",
    "cosine": 0.912,
    "csls": 0.431,
    "verdict": "known test link",
    "probability": 0.97,
}
DIRECTION: Final = {"hits@1": 0.643, "hits@10": 0.98, "mrr": 0.763, "mean_rank": 2.1}
METRICS: Final = {"source_to_target": DIRECTION, "target_to_source": DIRECTION, "protocol": "CSLS (k = 10) within the pool of test entities"}
DECISION: Final = {
    "source": SOURCE,
    "target": TARGET,
    "verdict": "accept",
    "note": "",
    "number": 12,
    "author": "nightly check",
    "time": "2026-11-29T12:00:00.000+00:00",
    "click": "f3b1c2",
    "seen": {"run": RUN, "csls": 0.431, "probability": 0.97},
}
PLACED: Final = {
    "id": "new",
    "basis": {"structure": 1.0, "names": 0.0, "values": 0.0},
    "used": 1,
    "ignored": [],
    "matches": [
        {
            "rank": 1,
            "uri": TARGET,
            "label": "Schweden",
            "csls": 0.21,
            "cosine": 0.7,
            "names": None,
            "values": None,
            "probability": 0.61,
            "matched_with": SOURCE,
        }
    ],
}
EXAMPLES: Final[Mapping[str, Any]] = {
    "health": {"status": "ok", "version": "0.2.0"},
    "runs": {"runs": [{"run": RUN, "state": "finished", "variant": "basic", "created": "2026-11-29T12:00:00+00:00", "hits@1": 0.643}]},
    "run": {
        "run": RUN,
        "status": "finished",
        "variant": "basic",
        "seed": 0,
        "created": "2026-11-29T12:00:00+00:00",
        "fingerprint": "5d1c",
        "source": {"name": "GeoNames", "entities": 1200, "relations": 9, "triples": 6100},
        "target": {"name": "Natural Earth", "entities": 1100, "relations": 8, "triples": 5400},
        "links": {"train": 300, "valid": 0, "test": 700},
        "stored_matches": 10,
        "metrics": METRICS,
    },
    "metrics": {"run": RUN, "metrics": METRICS, "reviewed_sample": None},
    "search": {"run": RUN, "entities": [LEFT, RIGHT]},
    "match": {"run": RUN, "pool": "all", "entity": LEFT, "matches": [MATCH]},
    "new entities": {
        "entities": [{"id": "new", "label": "Sverige", "triples": [["new", "neighbours", SOURCE]], "values": [["population", "10500000"]]}],
        "side": "source",
        "top": 5,
    },
    "new matches": {"run": RUN, "entities": [PLACED]},
    "pair": {
        "run": RUN,
        "source": LEFT,
        "target": RIGHT,
        "pool": "all",
        "cosine": 0.912,
        "csls": 0.431,
        "names": None,
        "values": None,
        "rank_from_source": 1,
        "rank_from_target": 1,
        "verdict": "known test link",
        "probability": 0.97,
        "added": None,
        "pool_sizes": [1100, 1200],
    },
    "explain": {
        "run": RUN,
        "csls": 0.431,
        "parts": [{"name": "entity channel, input: multi-hop", "value": 0.616}],
        "summary": [{"label": "Verdict", "text": "Very likely the same."}],
    },
    "reviews": {"run": RUN, "total": 1, "offset": 0, "decisions": [DECISION]},
    "decisions": {"author": "nightly check", "decisions": [{"source": SOURCE, "target": TARGET, "verdict": "accept", "note": ""}], "click": "f3b1c2"},
    "reviews stored": {"run": RUN, "click": "f3b1c2", "decisions": [DECISION]},
}
