"""Benchmarks of pools, disks, shares and the network: workloads, cases, runs, validity and conclusions.

It may import every other package. The pages of pools use ``layout_results``. Start at ``matrix`` and
``run_case.RunBenchmarkCase``.
"""

from __future__ import annotations
