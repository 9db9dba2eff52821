"""The agent: the only code of Larder's that runs as root while the box is in use.

``__main__`` is the server (a process for each request), ``requests`` is what can be asked for and how it is answered.
It may import anything of ``appliance`` and nothing of ``web`` or ``workers``. Start at ``requests.answer_request``.
"""

from __future__ import annotations
