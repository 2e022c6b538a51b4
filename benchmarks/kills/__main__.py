"""``python -m benchmarks.kills``."""

from benchmarks.kills.command import main

if __name__ == "__main__":
    raise SystemExit(main())
