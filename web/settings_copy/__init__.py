"""The settings of Larder's database in the record of the box on its pools: what is kept of
them, and bringing them back."""

from __future__ import annotations
