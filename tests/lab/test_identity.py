"""Record identity: changed code, libraries or data run again; changed prose does not."""

import importlib
from pathlib import Path

import pytest

from executed import executed, uncovered
from smoke import smoke_trials
from unlazy.core import source_code
from unlazy.core.source_code import Module, reached
from unlazy.kernels.stationary import RBF
from unlazy.lab import provenance, registry
from unlazy.lab.engines.local import LocalEngine
from unlazy.lab.trials import Measurement, Trial
from unlazy.learners import catalog
from unlazy.learners.kernel import KernelRidge
from unlazy.probes.performance import Performance
from unlazy.tasks.multi_index import MultiIndex

#: Families of this package on which every learner of the catalog can be tried, by their outputs.
FAMILY = MultiIndex(d=6)
LEARNERS = {name: entry.value for name, entry in registry.learners().items()}
TASKS = {name: entry.value for name, entry in registry.tasks().items()}


def small(name):
    """A trial of a learner on a small task."""
    return Trial(FAMILY, LEARNERS[name], 24, 1, (Performance(50),))


@pytest.fixture
def edited(monkeypatch):
    """Edit the source of modules as the fingerprint sees it: `edited(module, old, new)`."""
    sources, changed = {}, {}
    plain = source_code.module_of

    class Edited(Module):
        def _read(self, path):
            return sources[self.name].encode()

    def edit(name, old, new):
        path = source_code.ROOT.joinpath(*name.split(".")[1:]).with_suffix(".py")
        if not path.is_file():
            path = path.with_suffix("") / "__init__.py"
        text = sources.get(name, path.read_text(encoding="utf-8"))
        assert old in text, f"{old!r} is not in {name}"
        sources[name] = text.replace(old, new, 1)
        changed[name] = Edited(name, path)
        provenance._code.cache_clear()

    monkeypatch.setattr(provenance, "cached_reach", reached)  # the file knows the source on disk
    monkeypatch.setattr(source_code, "module_of", lambda name: changed.get(name) or plain(name))
    yield edit
    provenance._code.cache_clear()


def fresh(trial):
    """Return the same trial without cached key and fingerprint."""
    for name in ("key", "fingerprint", "id"):
        trial.__dict__.pop(name, None)
    return trial


def with_a_change(kind, edited):
    """Add an attribute to a class, as an edit of its code would."""
    path = importlib.import_module(kind.__module__).__file__
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith(f"class {kind.__name__}("))
    end = next(i for i in range(first, len(lines)) if lines[i].endswith(":"))
    head = "\n".join(lines[first : end + 1])
    edited(kind.__module__, head, f"{head}\n    edited = 1")


@pytest.mark.parametrize("name", LEARNERS)
def test_a_changed_learner_has_another_fingerprint_and_the_same_key(name, edited):
    trial = small(name) if LEARNERS[name].suits(FAMILY.outputs) else None
    if trial is None:
        pytest.skip("it does not suit labels that are signs")
    key, before = trial.key, trial.id
    with_a_change(type(trial.learner), edited)  # some are adapted to the task
    assert fresh(trial).key == key and trial.id != before


@pytest.mark.parametrize("name", TASKS)
def test_a_changed_task_has_another_fingerprint_and_the_same_key(name, edited):
    family = TASKS[name]
    if family.missing is not None:
        pytest.skip(family.missing)
    if not catalog.LEARNERS["linear"].value.suits(family.outputs):
        pytest.skip("linear does not suit it")
    trial = Trial(family, LEARNERS["linear"], 4, 1, ())
    key, before = trial.key, trial.id
    with_a_change(type(family), edited)
    assert fresh(trial).key == key and trial.id != before


RBF_TRIAL = Trial(FAMILY, KernelRidge(RBF(0.5)), 24, 1, (Performance(50),))


@pytest.mark.parametrize(
    ("module", "old", "new", "counts"),
    [
        ("unlazy.kernels.stationary", "jnp.exp(-self.gamma * squared)", "jnp.exp(-squared)", True),
        ("unlazy.kernels.stationary", "jnp.sqrt(squared)", "jnp.cbrt(squared)", False),
        ("unlazy.probes.performance", "class Performance(", "N = 3\n\n\nclass Performance(", False),
    ],
    ids=["its kernel", "another kernel of the module", "a constant that nothing uses"],
)
def test_only_what_changes_the_computation_counts(module, old, new, counts, edited):
    before = fresh(RBF_TRIAL).id
    edited(module, old, new)
    assert (fresh(RBF_TRIAL).id != before) == counts


@pytest.mark.parametrize(
    "change",
    [
        ('"""', '"""Another text. '),
        ("from __future__", "# A comment.\nfrom __future__"),
    ],
    ids=["docstring", "comment"],
)
@pytest.mark.parametrize("module", ["unlazy.kernels.stationary", "unlazy.learners.kernel"])
def test_docstrings_and_comments_do_not_count(module, change, edited):
    before = fresh(RBF_TRIAL).id
    edited(module, *change)
    assert fresh(RBF_TRIAL).id == before


def test_a_claims_text_and_bounds_do_not_count(edited):
    claim = registry.claims()["shi2022/table1"]
    trial = next(iter(claim.arms("smoke").values())).trials([1000])[0]
    before = trial.id
    edited("unlazy.papers.shi2022.table1", "On parity labels", "Upon parity labels")
    assert fresh(trial).id == before


@pytest.mark.slow
def test_no_fingerprint_covers_prose_reports_or_the_command_line():
    allowed = {f"unlazy.{name}" for name in source_code.COMPUTING}
    for claim in registry.claims().values():
        for arm in claim.arms("smoke").values():
            for trial in arm.trials([0])[:1]:
                folders = {name.split(".")[1] for name in {*trial.fingerprint.code} - allowed}
                assert not folders & {"report", "play", "cli", "lab", "api"}, claim.id


def test_a_new_field_with_a_default_changes_no_key(monkeypatch):
    """Fields equal to their defaults are left out of keys."""
    from unlazy.core.naming import describe

    assert "precision" not in str(describe(KernelRidge(RBF(0.5)), brief=True))
    assert describe(KernelRidge(RBF(0.5)), brief=True) != describe(
        KernelRidge(RBF(0.25)), brief=True
    )


def test_library_versions_and_data_count(monkeypatch):
    before = fresh(RBF_TRIAL).fingerprint
    monkeypatch.setattr(
        provenance, "_libraries", lambda: {"jax": "99", **dict.fromkeys(("numpy",), "1")}
    )
    after = fresh(RBF_TRIAL).fingerprint
    assert after.id != before.id
    assert any(
        each.startswith("jax ") for each in provenance.changes(before.to_json(), after.to_json())
    )
    fresh(RBF_TRIAL)


def test_an_import_inside_a_function_and_a_module_alias_are_followed():
    found = reached([("unlazy.estimators.catalog", "RFM")])
    assert "unlazy.estimators.recursion" in found and "unlazy.solvers.exact" in found


def test_a_derivative_written_by_hand_is_part_of_its_function(edited):
    roots = [("unlazy.core.activations", "smooth_ramp")]
    before = reached(roots)
    edited("unlazy.core.activations", "_normal_cdf(u) * dz", "2 * _normal_cdf(u) * dz")
    assert reached(roots) != before


#: A learner of each class of the catalog; the others run the same code with other numbers.
COVERED = {type(entry.value): name for name, entry in reversed(catalog.LEARNERS.items())}
CATALOG = [name for name in catalog.LEARNERS if catalog.LEARNERS[name].value.suits(FAMILY.outputs)]


@pytest.mark.parametrize(
    "name",
    [
        name
        if COVERED[type(LEARNERS[name])] == name
        else pytest.param(name, marks=pytest.mark.slow)
        for name in CATALOG
    ],
)
def test_what_runs_is_covered_by_the_fingerprint(name):
    """The names that a fingerprint covers include all functions that are called."""
    trial = small(name)
    _ = trial.id
    with executed() as seen:
        list(LocalEngine().run([trial]))
    assert len(seen) > 5
    assert uncovered(seen, trial) == set()


#: The first measurement of each kind of exact computation.
COMPUTATIONS = {
    type(trial.computation).__name__: trial
    for trial in reversed(smoke_trials().values())
    if isinstance(trial, Measurement)
}


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPUTATIONS)
def test_what_exact_computations_run_is_covered(name):
    trial = COMPUTATIONS[name]
    _ = trial.id
    with executed() as seen:
        list(LocalEngine().run([trial]))
    assert uncovered(seen, trial) == set()


def test_an_uncovered_function_would_be_found():
    """Call a function to which the classes of the trial do not refer."""
    with executed() as seen:
        catalog.LEARNERS["linear"].value.suits(FAMILY.outputs)
        registry.tasks()["shi2022/task"].value.moments  # noqa: B018
    assert uncovered(seen, RBF_TRIAL)
