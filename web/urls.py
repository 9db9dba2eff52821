"""Every address of Larder, one line a page family."""

from __future__ import annotations

from django.conf import settings
from django.urls import include, path

from web.benchmarks import client_views
from web.overview import first_steps
from web.overview import views as overview
from web.search import views as search
from web.system import views as system

urlpatterns = [
    path("", overview.show_overview, name="overview"),
    path("first-steps/<str:key>/dismiss/", first_steps.dismiss_step, name="dismiss_step"),
    path("ready/", system.ready, name="ready"),
    path("", include("web.accounts.urls")),
    path("search/", search.search, name="search"),
    path("help/", system.show_help, name="help"),
    path("guide/", include("web.guide.urls")),
    path("system/", include("web.box.urls")),
    path("", include("web.disks.urls")),
    path("", include("web.alerts.urls")),
    path("pools/", include("web.pools.urls")),
    path("folders/", include("web.datasets.urls")),
    path("snapshots/", include("web.snapshots.urls")),
    path("backups/recovery/", include("web.settings_copy.urls")),
    path("backups/", include("web.backups.urls")),
    path("imports/", include("web.imports.urls")),
    path("folders/", include("web.shares.urls")),
    path("shares/", include("web.shares.troubleshoot_urls")),
    path("", include("web.users.urls")),
    path("jobs/", include("web.jobs.urls")),
    path("larder-client.py", client_views.show_script, name="client_script"),
    path("benchmarks/", include("web.benchmarks.urls")),
]
if settings.DEBUG:
    urlpatterns.append(path("components/", system.show_components, name="components"))

handler404 = "web.system.error_pages.not_found"
handler500 = "web.system.error_pages.server_error"
