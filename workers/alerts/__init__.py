"""What becomes of faults: gathered and judged by the rules, stored as alerts, delivered by mail and webhook.

Start at ``evaluate_alerts``. The rows, and what opens and clears them, are in ``web/alerts``, as pages use them too;
the rules are in ``appliance/alerts``.
"""

from __future__ import annotations
