"""Pages of benchmarks: choose a preset, review it, follow the run, see the results."""

from __future__ import annotations
