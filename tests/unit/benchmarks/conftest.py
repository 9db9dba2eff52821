"""What several tests of benchmarks use."""

from __future__ import annotations

import importlib.machinery
import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

import appliance.benchmarks

SCRIPT = Path(appliance.benchmarks.__path__[0]) / "larder-client"


@pytest.fixture(scope="session")
def script() -> ModuleType:
    """``larder-client`` as a module."""
    loader = importlib.machinery.SourceFileLoader("larder_client", str(SCRIPT))
    spec = importlib.util.spec_from_loader("larder_client", loader)
    assert spec
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module
