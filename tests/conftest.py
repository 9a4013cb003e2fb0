"""Settings for all tests."""

import contextlib
import ctypes
import gc
import os
import sys
from pathlib import Path

# Nothing that is imported while tests are collected becomes garbage.
gc.disable()
# Compiled programs are shared between tests, workers and subprocesses. Set before JAX is imported.
_CACHE = Path(__file__).parent.parent / ".pytest_cache" / "programs"
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(_CACHE))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
# Other caches of the package are the suite's own, too.
os.environ["XDG_CACHE_HOME"] = str(_CACHE.parent / "cache")
# Tests compile much and compute little: unoptimized code and the simpler fusion emitter take a
# third of the time. Two programs that draw the same numbers may then differ in their last bit.
QUICK = (
    "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false "
    "--xla_cpu_parallel_codegen_split_count=1 "
    "--xla_llvm_disable_expensive_passes=true"
)
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {QUICK}".strip()
# Implicit rank promotion and mixed dtypes are errors, also in subprocesses and in test formulas.
os.environ["JAX_NUMPY_RANK_PROMOTION"] = "raise"
os.environ["JAX_NUMPY_DTYPE_PROMOTION"] = "strict"
# Workers share the cores, so each has one thread.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Folder of image datasets next to the project; tests that need missing ones are skipped.
_IMAGES = Path(__file__).parent.parent.parent / "shared" / "data"
if _IMAGES.is_dir():
    os.environ.setdefault("UNLAZY_DATA", str(_IMAGES))

import jax  # noqa: E402
import jaxtyping  # noqa: E402
import pytest  # noqa: E402

import checked_types  # noqa: E402

#: Folders whose array annotations are checked at every call.
COMPUTING = (
    *("core", "tasks", "networks", "kernels", "solvers", "learners", "probes", "theory"),
    *("papers", "estimators"),
)
checked_types.install([f"unlazy.{folder}" for folder in COMPUTING])

#: Resident bytes above which a worker drops its compiled programs.
MAX_RESIDENT = 1700 << 20
#: Mapped memory regions above which it drops them, too. Linux allows a process 65,530, each program
#: takes some, and XLA crashes at the limit.
MAX_REGIONS = 40_000
#: Resident bytes after programs were last dropped: what stays is data and modules.
_floor = [0]


@pytest.fixture(autouse=True)
def _bounded_memory():
    """Drop compiled programs when they fill the memory.

    Many programs are shared between tests, so they are kept until then.
    """
    yield
    if _resident() > max(MAX_RESIDENT, _floor[0] + (400 << 20)):
        _drop_programs()


@pytest.fixture(autouse=True, scope="module")
def _bounded_regions():
    yield
    if _regions() > MAX_REGIONS:
        _drop_programs()


def _drop_programs():
    plt = sys.modules.get("matplotlib.pyplot")
    if plt is not None:
        plt.close("all")
    jax.clear_caches()
    gc.collect()
    _return_freed_memory()
    _floor[0] = _resident()


def _resident():
    """Return the resident bytes of this process, or 0 on systems without /proc."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def _regions():
    """Return the number of mapped memory regions, or 0 on systems without /proc."""
    try:
        return Path("/proc/self/maps").read_bytes().count(b"\n")
    except OSError:
        return 0


def _return_freed_memory():
    """Return freed heap pages to the system, which glibc keeps otherwise."""
    if sys.platform.startswith("linux"):
        with contextlib.suppress(AttributeError):  # another C library
            ctypes.CDLL(None).malloc_trim(0)


@pytest.fixture
def unchecked():
    """Disable the check of annotations, for tests of error messages on wrong arrays."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture(autouse=True)
def _folder_of_before():
    """Restore the data folder, which a command with --data changes for this process."""
    before = os.environ.get("UNLAZY_DATA")
    yield
    if before is None:
        os.environ.pop("UNLAZY_DATA", None)
    else:
        os.environ["UNLAZY_DATA"] = before


#: The longest files, in CPU seconds; they start first, so that both workers end together.
LONG = (
    "learners/test_contract.py",
    "cli/test_cli.py",
    "lab/test_engines.py",
    "lab/test_claims.py",
    "test_docs.py",
    "learners/test_gradient.py",
    "tables/test_audit.py",
    "studies/test_benchmark.py",
    "lab/test_identity.py",
    "learners/test_path.py",
    "tasks/test_contract.py",
    "tasks/images/test_families.py",
    "kernels/test_kernels.py",
    "lab/test_faults.py",
    "learners/test_learning_curves.py",
    "estimators/test_estimators.py",
    "learners/circuits/test_layerwise.py",
    "tasks/dictionary/test_patterns.py",
    "learners/test_adapters.py",
    "studies/test_scaling.py",
    "learners/circuits/test_tree.py",
    "papers/malach2019/test_recovering.py",
    "learners/test_sources.py",
    "networks/test_outputs.py",
    "core/test_gaussian.py",
    "papers/glasgow2023/test_growth.py",
    "lab/test_pools.py",
    "papers/daniely2020/test_training.py",
    "lab/test_store.py",
)


def pytest_collection_finish():
    """Collect garbage from here on, but without a look at what has been imported."""
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)
    gc.enable()


def pytest_collection_modifyitems(items):
    """Sort files for the workers (`--no-loadscope-reorder`), the longest first."""
    places = {f"tests/{name}": place for place, name in enumerate(LONG)}
    items.sort(key=lambda item: places.get(item.nodeid.partition("::")[0], len(places)))
