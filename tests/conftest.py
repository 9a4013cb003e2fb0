"""Settings for all tests."""

import contextlib
import ctypes
import gc
import os
import sys
from pathlib import Path

# Compiled programs are shared between tests, workers and subprocesses. Set before JAX is imported.
_CACHE = Path(__file__).parent.parent / ".pytest_cache" / "programs"
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(_CACHE))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
# Tests compile much and compute little: unoptimized code and the simpler fusion emitter take a
# third of the time. Two programs that draw the same numbers may then differ in their last bit.
QUICK = (
    "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false "
    "--xla_cpu_parallel_codegen_split_count=1 "
    "--xla_llvm_disable_expensive_passes=true"
)
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {QUICK}".strip()
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

#: Folders whose array annotations are checked at every call.
COMPUTING = (
    *("core", "tasks", "networks", "kernels", "solvers", "learners", "probes", "theory"),
    *("papers", "estimators"),
)
jaxtyping.install_import_hook([f"unlazy.{folder}" for folder in COMPUTING], "checked_types.checked")
#: Tests in which implicit rank promotion is an error.
RANKED = ("core", "solvers", "theory")

#: Resident bytes above which a worker drops its compiled programs.
MAX_RESIDENT = 1600 << 20
#: Mapped memory regions above which it drops them, too. Linux allows a process 65,530, each program
#: takes some, and XLA crashes at the limit.
MAX_REGIONS = 20_000
#: Resident bytes after programs were last dropped.
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


@pytest.fixture(autouse=True)
def _ranks(request):
    """Raise an error on implicit rank promotion."""
    strict = request.path.relative_to(Path(__file__).parent).parts[0] in RANKED
    with jax.numpy_rank_promotion("raise" if strict else "allow"):
        yield


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
    "kernels/test_kernels.py",
    "cli/test_cli.py",
    "tasks/test_contract.py",
    "estimators/test_checks.py",
    "test_docs.py",
    "estimators/test_estimators.py",
    "lab/test_faults.py",
    "learners/test_gradient.py",
    "play/test_browser.py",
    "play/test_training.py",
    "tables/test_audit.py",
    "learners/test_sources.py",
    "networks/test_convolutional.py",
    "papers/shi2022/test_queries.py",
    "papers/daniely2020/test_training.py",
    "papers/malach2019/test_recovering.py",
    "papers/shi2022/test_lemmas.py",
    "networks/test_adapters.py",
    "networks/test_outputs.py",
    "studies/test_outputs.py",
    "lab/test_engines.py",
    "studies/test_scaling.py",
)


def pytest_collection_modifyitems(items):
    """Sort files for the workers (`--no-loadscope-reorder`), the longest first."""
    places = {f"tests/{name}": place for place, name in enumerate(LONG)}
    items.sort(key=lambda item: places.get(item.nodeid.partition("::")[0], len(places)))
