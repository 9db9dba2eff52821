"""What ``zpool import`` prints: recorded where it was, else made up after ``show_import``
and ``print_import_config``."""

from __future__ import annotations

from typing import Any

from appliance.facts.importable import Importable, ImportablePart, Rewind
from tests.unit.made import recorded_text

GUID = 4958685680270539150


def renamed(kind: str, name: str, guid: int) -> str:
    """A recorded listing of the pool ``imp`` under another name and number."""
    text = recorded_text(f"zpool-import-{kind}-2.3.9.txt").replace("6785599788484575482", str(guid))
    return text.replace("pool: imp\n", f"pool: {name}\n").replace("\timp ", f"\t{name} ")


HEALTHY = renamed("healthy", "attic", GUID)
DEGRADED = renamed("degraded", "weak", 49)
DESTROYED = renamed("destroyed", "gone", 46)
FOREIGN_AND_WEAK = """\
  pool: old
    id: 42
 state: DEGRADED
status: The pool was last accessed by another system.
action: The pool can be imported despite missing or damaged devices.  The
\tfault tolerance of the pool may be compromised if imported.
comment: of the cellar
   see: https://openzfs.github.io/openzfs-docs/msg/ZFS-8000-EY
config:

\told                      DEGRADED
\t  raidz1-0               DEGRADED
\t    sdb                  ONLINE
\t    1234567890123456789  UNAVAIL  cannot open
\t    sdc                  ONLINE
\tcache
\t  sdd
\tspares
\t  sde
\tlogs\t
\t  sdf                    ONLINE
"""
DAMAGED = """\
  pool: broken
    id: 43
 state: FAULTED
status: The pool metadata is corrupted.
action: The pool cannot be imported due to damaged devices or data.
\tThe pool may be active on another system, but can be imported using
\tthe '-f' flag.
   see: https://openzfs.github.io/openzfs-docs/msg/ZFS-8000-72
config:

\tbroken      FAULTED  corrupted data
\t  sdb       ONLINE
"""
MISSING = """\
  pool: half
    id: 44
 state: UNAVAIL
status: One or more devices are missing from the system.
action: The pool cannot be imported. Attach the missing
\tdevices and try again.
   see: https://openzfs.github.io/openzfs-docs/msg/ZFS-8000-6X
config:

\thalf                     UNAVAIL  missing device
\t  sdb                    ONLINE

\tAdditional devices are known to be part of this pool, though their
\texact configuration cannot be determined.
"""
NO_LOG = """\
  pool: nolog
    id: 45
 state: UNAVAIL
status: One or more devices are missing from the system.
action: The pool cannot be imported. Attach the missing
\tdevices and try again.
config:

\tnolog      UNAVAIL  missing device
\t  sdb      ONLINE
\tlogs\t
\t  sdc      UNAVAIL  cannot open
"""
NEWER = """\
  pool: newer
    id: 47
 state: UNAVAIL
status: The pool can only be accessed in read-only mode on this system. It
\tcannot be accessed in read-write mode because it uses the following
\tfeature(s) not supported on this system:
\torg.example:later (Something later)
action: The pool cannot be imported in read-write mode. Import the pool with
\t"-o readonly=on", access the pool on a system that supports the
\trequired feature(s), or recreate the pool from backup.
config:

\tnewer       UNAVAIL  unsupported feature(s)
\t  sdb       ONLINE
"""
IN_USE = """\
  pool: shared
    id: 48
 state: UNAVAIL
status: The pool is currently imported by another system.
action: The pool must be exported from cellar (hostid=1435718c)
\tbefore it can be safely imported.
config:

\tshared      UNAVAIL  currently in use
\t  sdb       ONLINE
"""
ALL = "\n".join([HEALTHY, FOREIGN_AND_WEAK, DAMAGED, MISSING, NO_LOG, NEWER, IN_USE])


def found(**changes: Any) -> Importable:
    """Made up: a whole pool called attic."""
    made: dict[str, Any] = {
        "name": "attic",
        "guid": GUID,
        "state": "ONLINE",
        "parts": (ImportablePart("attic", "ONLINE"),),
    }
    return Importable(**{**made, **changes})


REWIND = Rewind("Sat 21 Nov 2026 08:00:00 AM UTC", "12 seconds")
SEARCH = Rewind("Sat Nov 21 08:00:00 2026", at_worst="Fri Nov 20 21:00:00 2026")
