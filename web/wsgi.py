"""What gunicorn serves."""

import os

from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "web.settings")
application = get_wsgi_application()
# Every view is loaded here, before the serving process comes to be: it shares them, and no visitor waits for them.
get_resolver().url_patterns  # noqa: B018  # reading it is what loads them
