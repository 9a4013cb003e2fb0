"""Where a record comes from: versions, device, and a hash of the source that computed it."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import os
import platform
from pathlib import Path
from typing import Any

import unlazy

#: What a number can depend on. Reports, stores and the command line are left out: they cannot change a measurement.
COMPUTING = (
    "errors.py",
    "finite_width.py",
    "infinite_width.py",
    "iterative.py",
    "kernels.py",
    "krylov.py",
    "losses.py",
    "moments.py",
    "networks.py",
    "probes.py",
    "random.py",
    "recursive.py",
    "residual.py",
    "residual_width.py",
    "ridge.py",
    "solvers.py",
    "xor_probes.py",
    "tasks",
    "learners",
    "theory",
    "experiments",
    "lab/engines.py",
)


@functools.cache
def source_hash() -> str:
    """Hash of the parts of this package that compute measurements."""
    root = Path(unlazy.__file__).parent
    digest = hashlib.sha256()
    for name in COMPUTING:
        for path in sorted((root / name).rglob("*.py")) if (root / name).is_dir() else [root / name]:
            digest.update(str(path.relative_to(root)).encode() + path.read_bytes())
    return digest.hexdigest()[:16]


@functools.cache
def provenance() -> dict[str, Any]:
    """Versions, device and source of this process."""
    import jax

    device = jax.devices()[0]
    packages = ("jax", "jaxlib", "equinox", "optax", "numpy", "scipy", "scikit-learn")
    return {
        "unlazy": unlazy.__version__,
        "source": source_hash(),
        "python": platform.python_version(),
        **{name: importlib.metadata.version(name) for name in packages},
        "device": f"{device.platform}: {device.device_kind}",
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
    }
