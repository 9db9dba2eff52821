"""Alerts: the list, one alert, who is told and how."""

from __future__ import annotations
