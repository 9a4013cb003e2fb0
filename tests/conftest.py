"""Settings for all tests."""

import gc
import os
from pathlib import Path

# Compiled programs are shared between tests, workers and subprocesses. Set before JAX is imported.
_CACHE = Path(__file__).parent.parent / ".pytest_cache" / "programs"
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(_CACHE))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
# Tests compile much and compute little: code that is not optimised, and fusions by the plainer of
# two emitters, take a third of the time. The price: two programs that draw the same numbers may
# differ in their last bit.
QUICK = (
    "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false "
    "--xla_cpu_parallel_codegen_split_count=1 "
    "--xla_llvm_disable_expensive_passes=true"
)
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {QUICK}".strip()
# Workers share the cores: threads of several of them would mostly wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Sets of images beside the project, where they are; tests that need them are skipped elsewhere, and
# say what is missing.
_IMAGES = Path(__file__).parent.parent.parent / "shared" / "data"
if _IMAGES.is_dir():
    os.environ.setdefault("UNLAZY_DATA", str(_IMAGES))

import jax  # noqa: E402
import jaxtyping  # noqa: E402
import pytest  # noqa: E402

#: The folders that compute: their annotations of arrays are checked at every call.
COMPUTING = (
    *("core", "tasks", "networks", "kernels", "solvers", "learners", "probes", "theory"),
    *("papers", "estimators"),
)
jaxtyping.install_import_hook([f"unlazy.{folder}" for folder in COMPUTING], "checked_types.checked")
# Arrays of other rank are given their axes explicitly; a forgotten axis is an error.
jax.config.update("jax_numpy_rank_promotion", "raise")

#: Bytes of a worker above which it forgets the programs that it compiled: two workers take two
#: thirds of the machine at most.
MUCH = (
    os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 3
    if hasattr(os, "sysconf")
    else 4 << 30
)


#: Mapped pieces of memory above which it does so, too: Linux allows a process 65,530, programs take
#: some each, and XLA crashes there.
MANY = 20_000


@pytest.fixture(autouse=True, scope="module")
def _forget_programs():
    """Thousands of compiled programs would fill the memory; but many are shared between files, so
    they are only forgotten when they do.
    """
    yield
    try:
        resident = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        pieces = Path("/proc/self/maps").read_bytes().count(b"\n")
    except OSError:  # not Linux
        return
    if resident > MUCH or pieces > MANY:
        jax.clear_caches()
        gc.collect()


@pytest.fixture
def unchecked():
    """For tests of what a function says of wrong arrays: its annotations are not checked."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture(autouse=True)
def _folder_of_before():
    """A command that is run in this process with --data names its folder to all that comes after
    it.
    """
    before = os.environ.get("UNLAZY_DATA")
    yield
    if before is None:
        os.environ.pop("UNLAZY_DATA", None)
    else:
        os.environ["UNLAZY_DATA"] = before


#: Files that take longest: they start first, so that no worker is left alone with one of them in
#: the end.
LONG = (
    *(
        "learners/test_contract.py",
        "test_docs.py",
        "kernels/test_kernels.py",
        "cli/test_cli.py",
        "estimators/test_checks.py",
    ),
    *(
        "tasks/test_contract.py",
        "lab/test_faults.py",
        "play/test_browser.py",
        "tables/test_audit.py",
    ),
    *(
        "papers/daniely2020/test_training.py",
        "papers/malach2019/test_recovering.py",
        "studies/test_outputs.py",
        "networks/test_outputs.py",
        "learners/test_sources.py",
    ),
    *(
        "learners/circuits/test_layerwise.py",
        "studies/test_scaling.py",
        "lab/test_engines.py",
        "probes/test_clusters.py",
    ),
)


def pytest_collection_modifyitems(items):
    """Workers take files in this order (`--no-loadscope-reorder`; by default they would take those
    with most tests first).
    """
    places = {f"tests/{name}": place for place, name in enumerate(LONG)}
    items.sort(key=lambda item: places.get(item.nodeid.partition("::")[0], len(places)))
