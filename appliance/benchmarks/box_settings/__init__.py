"""Settings of the box that can be tried: does it help here?

May import ``appliance.system`` and what has no package. Start at ``catalogue.py``, which lists them;
``switch.py`` changes one while a benchmark from another computer runs, ``keep.py`` makes lasting what has helped.
"""

from __future__ import annotations
