"""Settings for all tests."""

import os
from pathlib import Path

# Compiled programs are shared between tests, workers and subprocesses. Set before JAX is imported.
_CACHE = Path(__file__).parent.parent / ".pytest_cache" / "programs"
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(_CACHE))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
# Workers share the cores: BLAS threads of several of them would mostly wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import jax  # noqa: E402
import pytest  # noqa: E402


@pytest.fixture(autouse=True, scope="module")
def _forget_programs():
    """Compiled programs of a file are not needed by the next: hundreds of them would fill the memory."""
    yield
    jax.clear_caches()
