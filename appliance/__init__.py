"""What the box can do."""

__version__ = "0.1.0"
