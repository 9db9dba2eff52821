"""The application that ``python -m web`` serves."""

import os

from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "web.settings")
application = get_wsgi_application()
# Every view is loaded here, so that no visitor waits for it.
get_resolver().url_patterns  # noqa: B018  # reading it is what loads them
