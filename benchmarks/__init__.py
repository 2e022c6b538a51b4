"""Measurements: accuracy beside the paper's, speed and memory. ``benchmarks/RESULTS.md`` has the figures with their commands."""
