"""The agent: the only code of Larder's that runs as root while the box is in use.

``__main__`` is the server (a process for each request), ``protocol`` decodes and answers what is asked,
``run_operation`` runs a job. It may import anything of ``appliance`` and nothing of ``web`` or ``workers``. Start at
``protocol.answer_request``.
"""

from __future__ import annotations
