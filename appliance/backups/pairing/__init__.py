"""Pairing two Larders by a code that one of them shows, so that backups of one go to the other.

The side that receives: ``receive_copies.py`` makes the folder, ``requests.py`` shows the code and answers the
other box, ``receivers.py`` keeps who was paired and lets those in through ``receive-copies``. How long copies
stay there is in ``set_retention.py``, and what that lets go is destroyed by ``prune_received.py``. The side that
sends: ``pair_box.py``. What both prove to each other is in ``codes.py``. Afterwards the receiving box is a
computer as any in ``backups/remote``.
"""

from __future__ import annotations
