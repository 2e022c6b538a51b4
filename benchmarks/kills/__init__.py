"""Kill -9 at random moments: of whatever trains, writes, imports, reviews, queues, exports, backs up or deletes.

After each kill what was acknowledged must be there, nothing half-written may be listed, the same work must be possible again, and trainings that are
resumed must end with the bits of unbroken ones.

    python -m benchmarks.kills sample_data/europe --links 300 --kills 200 --seed 0
    python -m benchmarks.kills sample_data/europe --links 300 --kills 20 --only import
"""

from benchmarks.kills.command import build_parser, main, study
from benchmarks.kills.places import PLACES

__all__ = ["PLACES", "build_parser", "main", "study"]
