"""Alerts: the list, one alert, notifications and their settings."""

from __future__ import annotations
