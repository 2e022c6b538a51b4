"""``python -m benchmarks.crowd``."""

from benchmarks.crowd.command import main

if __name__ == "__main__":
    raise SystemExit(main())
