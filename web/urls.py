"""Every address of Larder, one line a page family."""

from __future__ import annotations

from django.conf import settings
from django.urls import include, path

from web.inventory import views as inventory
from web.pools import moving
from web.system import views as system

urlpatterns = [
    path("", inventory.overview, name="overview"),
    path("ready/", system.ready, name="ready"),
    path("", include("web.accounts.urls")),
    path("disks/", inventory.disks, name="disks"),
    path("", include("web.bays.urls")),
    path("", include("web.alerts.urls")),
    path("disks/<str:key>/", inventory.disk, name="disk"),
    path("disks/<str:key>/wipe/", moving.wipe, name="wipe_disk"),
    path("pools/", include("web.pools.urls")),
    path("folders/", include("web.datasets.urls")),
    path("snapshots/", include("web.snapshots.urls")),
    path("folders/", include("web.shares.urls")),
    path("shares/", include("web.shares.reach_urls")),
    path("", include("web.people.urls")),
    path("jobs/", include("web.jobs.urls")),
    path("sweeps/", include("web.sweeps.urls")),
]
if settings.DEBUG:
    urlpatterns.append(path("components/", system.components, name="components"))

handler404 = "web.system.faults.not_found"
handler500 = "web.system.faults.server_error"
