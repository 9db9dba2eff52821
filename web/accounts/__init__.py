"""The first set-up, signing in and out, and sessions of the administrator."""

from __future__ import annotations
