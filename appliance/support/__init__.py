"""The support bundle: what is known of the box as plain text files in one zip, without secrets
and, by choice, without names.

``masking`` puts the same mask in place of the same name everywhere; ``sections`` says what each file holds and reads
it; ``bundle`` is the request that puts them together in memory. It may import ``pools`` and the ground.
"""

from __future__ import annotations
