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

#: Rooms that no measurement depends on: reports, the command line, the scikit-learn face, and the
#: laboratory but for its engines.
NOT_COMPUTING = ("__main__.py", "cli", "estimators", "lab", "report")
#: The part of the laboratory that computes.
ENGINES = "lab/engines"


def computing(root: Path) -> list[Path]:
    """The files of the package on which a measurement can depend."""
    files = [
        path for path in root.rglob("*.py") if path.relative_to(root).parts[0] not in NOT_COMPUTING
    ]
    return sorted([*files, *(root / ENGINES).glob("*.py")])


@functools.cache
def source_hash() -> str:
    """Hash of the parts of this package that compute measurements."""
    root = Path(unlazy.__file__).parent
    digest = hashlib.sha256()
    for path in computing(root):
        digest.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
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
