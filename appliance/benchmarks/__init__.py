"""Measuring pools and shares: workloads, cases, runs, whether a result is valid, what it means.

It may import every other package; none imports it but ``layout`` advice by ``layout_results``. Start at ``matrix``,
``run_case.RunBenchmarkCase``.
"""

from __future__ import annotations
