"""``python -m engine.jobs MODELS``: a trainer's process. Started by whoever asks for a training; there is no need to start it by hand."""

import sys
from pathlib import Path

from engine.jobs.trainer import run_trainer

if __name__ == "__main__":
    sys.exit(run_trainer(Path(sys.argv[1])))
