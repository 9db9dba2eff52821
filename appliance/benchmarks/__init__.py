"""Benchmarks of pools, disks, shares and the network: workloads, cases, runs, validity and conclusions.

It may import ``disks``, ``files``, ``layout``, ``pools``, ``shares``, ``snapshots``, ``zfs`` and the ground. The pages
of pools use ``layout_results``. Start at ``matrix`` and ``run_case.RunBenchmarkCase``; ``run_program`` runs the program
of a case (fio, dd, iperf3 …) once.
"""

from __future__ import annotations
