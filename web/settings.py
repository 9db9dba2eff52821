"""Django's settings for Larder. What differs from box to box comes from files and the environment."""

from __future__ import annotations

import sys
from pathlib import Path

from appliance import __version__
from appliance.system import paths
from web import environment
from web.allowed_hosts import BoxName, OwnNames

BASE_DIR = Path(__file__).resolve().parent.parent
DEBUG = environment.flag("LARDER_DEBUG", default=False)
# Making the key is what `prepare` is for, so that one command runs without it.
SECRET_KEY = (
    "none yet" if "prepare" in sys.argv[:2] else environment.secret("LARDER_SECRET_KEY", paths.STATE / "secret-key")
)

BOX_NAME: BoxName | str = BoxName()
VERSION = __version__
ALLOWED_HOSTS = OwnNames(paths.RUN / "inventory" / "addresses")

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "allauth",
    "allauth.account",
    "allauth.usersessions",
    "django_htmx",
    "web.accounts",
    "web.inventory",
    "web.disks",
    "web.alerts",
    "web.jobs",
    "web.pools",
    "web.snapshots",
    "web.backups",
    "web.datasets",
    "web.imports",
    "web.users",
    "web.shares",
    "web.benchmarks",
    "web.system",
    "web.overview",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "csp.middleware.CSPMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "web.system.htmx.lead_htmx",
    "web.system.caching.stored_nowhere",
    "web.language.as_the_browser_asks",
    "web.system.error_pages.faults_in_words",
    "web.agent.BusyPage",
    "web.jobs.refusals.OddRowPage",
    "web.system.timezone.in_the_zone_of_the_box",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "web.language.as_the_user_chose",
    "web.accounts.preferences.in_chosen_units",
    "web.accounts.first_run.until_set_up",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "allauth.account.middleware.AccountMiddleware",
]

ROOT_URLCONF = "web.urls"
WSGI_APPLICATION = "web.wsgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "OPTIONS": {
            "loaders": [
                (
                    "template_partials.loader.Loader",
                    [("django.template.loaders.cached.Loader", ["django.template.loaders.filesystem.Loader"])],
                )
            ],
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "web.system.context_processors.page_frame",
                "web.accounts.preferences.show_preferences",
            ],
            "builtins": [
                "django.templatetags.i18n",
                "template_partials.templatetags.partials",
                "web.system.templatetags.formatting",
                "web.system.templatetags.translate",
                "web.system.templatetags.messages",
            ],
        },
    }
]


# The settings database holds what belongs to the box; the inventory is facts in memory, rebuilt at every boot.
# A confirmed job has to outlive a power cut, so each of its commits waits for the disk (WAL alone does not: pragma
# synchronous, sqlite.org); the inventory is gone with the power anyway. Each thread has a connection to both, so each
# keeps 128 KiB of pages and not SQLite's two megabytes (the system holds the files in memory anyway), and 16 prepared
# statements and not Python's 128, which take 3 MiB in a process whose four threads have shown thirty pages.
def sqlite(name: Path, *, synchronous: str) -> dict[str, object]:
    pragmas = (
        f"PRAGMA journal_mode=WAL; PRAGMA synchronous={synchronous}; PRAGMA temp_store=MEMORY; PRAGMA cache_size=-128"
    )
    options = {"transaction_mode": "IMMEDIATE", "timeout": 20, "init_command": pragmas, "cached_statements": 16}
    return {"ENGINE": "django.db.backends.sqlite3", "NAME": name, "OPTIONS": options, "CONN_MAX_AGE": None}


DATABASES = {
    "default": sqlite(paths.STATE / "settings.sqlite3", synchronous="FULL"),
    "inventory": sqlite(paths.RUN / "inventory" / "inventory.sqlite3", synchronous="OFF"),
}
DATABASE_ROUTERS = ["web.inventory.router.InventoryRouter"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
# Login attempts are counted here: shared by all processes, gone at a reboot.
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.db.DatabaseCache",
        "LOCATION": "cache",
        "OPTIONS": {"MAX_ENTRIES": 20000},
    }
}

BROKER_URL = environment.text("LARDER_BROKER", "redis+socket:///run/redis-larder/redis.sock")
BROKER_SOCKET = Path(BROKER_URL.removeprefix("redis+socket://"))

# --- who may enter --------------------------------------------------------------------------------------------
AUTHENTICATION_BACKENDS = ["web.accounts.backend.UserBackend"]
# scrypt costs an attacker memory as well, and the box a third of the time that Django's default takes.
PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.ScryptPasswordHasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",  # of earlier versions; made anew at the next sign-in
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "web.accounts.password_validators.LengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "web.accounts.password_validators.SimilarityValidator"},
    {"NAME": "web.accounts.password_validators.CommonPasswordValidator"},
]
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "/"
ACCOUNT_ADAPTER = "web.accounts.adapter.Adapter"
ACCOUNT_LOGIN_METHODS = {"username"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "password1*", "password2*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_SESSION_REMEMBER = True
ACCOUNT_LOGOUT_REDIRECT_URL = "account_login"
ACCOUNT_RATE_LIMITS = {  # see web/accounts/sign_in_throttle.py
    "login": "30/m/ip",
    "login_failed": "10/m/ip,5/5m/key",  # the key: name and address
    "login_box": "50/5m/key",  # of all addresses at which nobody is signed in
    "setup": "10/m/key",
    "client_code": "30/5m/key",  # codes of benchmarks from another computer
    "pairing_code": "30/5m/key",  # codes of another Larder, of all addresses
    "change_password": "5/m/user",
    "reauthenticate": "10/m/user",
}
ALLAUTH_TRUSTED_CLIENT_IP_HEADER = "X-Real-IP"
USERSESSIONS_TRACK_ACTIVITY = False
SESSION_COOKIE_AGE = 14 * 24 * 3600
SESSION_COOKIE_NAME = "larder-session"
SESSION_COOKIE_SECURE = True
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Strict"
CSRF_COOKIE_NAME = "larder-csrf"
CSRF_COOKIE_SECURE = True
CSRF_COOKIE_HTTPONLY = True
CSRF_COOKIE_SAMESITE = "Strict"
CSRF_FAILURE_VIEW = "web.system.error_pages.csrf_failure"
MESSAGE_STORAGE = "django.contrib.messages.storage.session.SessionStorage"
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'none'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "font-src": ["'self'"],
        "connect-src": ["'self'"],
        "manifest-src": ["'self'"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'none'"],
        "base-uri": ["'none'"],
    }
}

STATIC_URL = "/static/"
STATIC_ROOT = Path(environment.text("LARDER_STATIC", "/opt/larder/static"))
STATICFILES_DIRS = [BASE_DIR / "web" / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.ManifestStaticFilesStorage"},
}

USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en-gb"
USE_I18N = True
LANGUAGES = [("en-gb", "English"), ("nl", "Nederlands")]
LOCALE_PATHS = [BASE_DIR / "web" / "locale"]
FORMAT_MODULE_PATH = ["web.formats"]
DATA_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024
DATA_UPLOAD_MAX_NUMBER_FIELDS = 500

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"plain": {"()": "appliance.log_format.JournalFormatter"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "plain"}},
    "root": {"handlers": ["console"], "level": "WARNING"},
}
