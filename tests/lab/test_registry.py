"""The registry, and plug-ins from outside: files, modules, installed packages."""

import dataclasses
import re
import sys
import textwrap
from pathlib import Path

import pytest

from contracts import check_family, check_learner
from toys import absent, keep
from unlazy.core.errors import BadInput, PluginWarning
from unlazy.lab import health, registry
from unlazy.lab.engines.local import LocalEngine
from unlazy.lab.store import Store
from unlazy.lab.trials import Trial
from unlazy.probes.performance import Performance
from unlazy.report.citations import entries

#: A family and a learner in thirty lines outside of the package.
PLUGIN = """
import equinox as eqx
import jax
import jax.numpy as jnp
from unlazy import Batch, Family, Learner, Predictor, Task, Trace, normal

def sign(z):
    return jnp.where(z >= 0, 1.0, -1.0)

class HalfspaceTask(Task):
    u: jax.Array
    dimension = property(lambda self: len(self.u))
    features = property(lambda self: self.u[None])
    chance = property(lambda self: jnp.asarray(0.5))
    target = lambda self, x: sign(x @ self.u)
    def draw(self, n, key):
        x = normal(key, (n, len(self.u)))
        return Batch(x, self.target(x))

class Halfspace(Family):
    d: int = eqx.field(static=True, default=8)
    dimension = property(lambda self: self.d)
    def task(self, *, key):
        u = normal(key, (self.d,))
        return HalfspaceTask(u / jnp.linalg.norm(u))

class Perceptron(Learner):
    def fit(self, sampler, n, *, key):
        seen = sampler.draw(n, key)
        step = lambda w, e: (w + jnp.where(e[1] * (e[0] @ w) <= 0, e[1], 0.0) * e[0], None)
        w, _ = jax.lax.scan(step, jnp.zeros(seen.x.shape[1]), seen)
        return Trace.of(Predictor(lambda w, x: x @ w, w), seen)
"""


@pytest.fixture
def plugin(tmp_path):
    path = tmp_path / "my.py"
    path.write_text(PLUGIN)
    return path


def trial(path, **options):
    return Trial(
        registry.family_of(f"{path}:Halfspace"),
        registry.learner_of(f"{path}:Perceptron"),
        200,
        3,
        (Performance(1000),),
    )


def test_the_example_has_thirty_lines():
    assert len([line for line in PLUGIN.splitlines() if line.strip()]) <= 30


def test_a_plug_in_keeps_the_contracts(plugin):
    family = registry.family_of(f"{plugin}:Halfspace", ["d=6"])
    assert family.d == 6
    check_family(family)
    check_learner(registry.learner_of(f"{plugin}:Perceptron"), family, 100)


def test_a_plug_in_runs_through_the_engine_and_the_store(plugin, tmp_path):
    with Store(tmp_path / "s.sqlite") as store:
        one = trial(plugin)
        keep([one], store, LocalEngine())
        assert store.get(one.id).value("test_accuracy") > 85
        assert absent([trial(plugin)], store) == []
        moved = tmp_path / "elsewhere" / "other.py"
        moved.parent.mkdir()
        moved.write_text(PLUGIN)
        assert trial(moved).id == one.id and absent([trial(moved)], store) == [], (
            "a file that moved is the same"
        )
        # An edited helper makes another trial, which runs with the new code in the same process and
        # engine.
        plugin.write_text(
            PLUGIN.replace("jnp.where(z >= 0, 1.0, -1.0)", "jnp.where(z * z >= 0.5, 1.0, -1.0)")
        )
        edited = trial(plugin)
        assert edited.id != one.id and edited.key == one.key and absent([edited], store) == [edited]
        keep([edited], store, LocalEngine())
        assert store.get(edited.id).value("test_accuracy") < 75


def test_two_versions_in_one_engine_do_not_share_programs(plugin):
    """The classes differ only in their code."""
    one = trial(plugin)
    plugin.write_text(PLUGIN.replace("z >= 0", "z * z >= 0.5"))
    two = trial(plugin)
    assert (
        type(one.family) is not type(two.family)
        and type(one.family).__name__ == type(two.family).__name__
    )
    engine = LocalEngine()
    found = {record.id: record.value("test_accuracy") for record in engine.run([one, two])}
    assert found[one.id] > 85 and found[two.id] < 75
    assert [record.value("test_accuracy") for record in engine.run([one])] == [found[one.id]]


def test_an_instance_can_be_named(plugin):
    plugin.write_text(PLUGIN + "\nSMALL = Halfspace(3)\n")
    assert registry.family_of(f"{plugin}:SMALL").d == 3


@pytest.mark.parametrize(
    ("text", "name", "says"),
    [
        (PLUGIN, "Halfspcae", "no task named 'Halfspcae'. Did you mean 'Halfspace'"),
        (PLUGIN, "Perceptron", "must be a task .Family., got the class Perceptron"),
        (PLUGIN, "sign", "must be a task .Family., got an object of type function"),
        (
            PLUGIN.replace("default=8", ""),
            "Halfspace",
            "cannot be called without arguments.*'d'.*Give its fields defaults",
        ),
        (
            PLUGIN.replace("def task(self, *, key)", "def tusk(self, *, key)"),
            "Halfspace",
            "is incomplete: it does not define task",
        ),
        (PLUGIN + "\nclass (:", "Halfspace", "cannot be loaded: SyntaxError in line 34"),
        (
            PLUGIN + "\nimport no_such_module",
            "Halfspace",
            "cannot be loaded: ModuleNotFoundError: No module named 'no_such_module'",
        ),
        (PLUGIN + "\n1 / 0", "Halfspace", "cannot be loaded: ZeroDivisionError"),
    ],
)
def test_mistakes_are_reported(tmp_path, text, name, says):
    path = tmp_path / "my.py"
    path.write_text(text)
    with pytest.raises(BadInput, match=says):
        registry.family_of(f"{path}:{name}")


@pytest.mark.parametrize(
    ("place", "says"),
    [
        ("nowhere.py:Thing", "There is no file nowhere.py"),
        ("nowhere.py", "no task named 'nowhere.py'.*file.py:Name"),
        ("no_such_package.module:Thing", "the module no_such_package.module cannot be imported"),
        ("toys:Halfspcae", "no task named 'Halfspcae'. Did you mean 'Halfspace'"),
        ("glasgow2023/tsk", "Did you mean 'glasgow2023/task'"),
    ],
)
def test_unknown_names_are_reported(place, says):
    with pytest.raises(BadInput, match=says):
        registry.family_of(place)


def test_a_module_on_the_path_is_found():
    assert type(registry.family_of("toys:Blobs")).__name__ == "Blobs"


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Install a package with a catalog as an entry point."""

    def install(text):
        (tmp_path / "offering.py").write_text(textwrap.dedent(text))
        about = tmp_path / "offering-1.0.dist-info"
        about.mkdir(exist_ok=True)
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: offering\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text("[unlazy]\nmine = offering\n")
        monkeypatch.syspath_prepend(tmp_path)
        registry.installed.cache_clear()

    yield install
    sys.modules.pop("offering", None)
    monkeypatch.undo()
    registry.installed.cache_clear()


def test_an_installed_package_offers_by_name(installed):
    installed("""
        from toys import Halfspace
        from unlazy import Entry
        TASKS = {"mine/halfspace": Entry(Halfspace(7), "a halfspace")}
    """)
    assert registry.family_of("mine/halfspace").d == 7 and "mine/halfspace" in registry.tasks()


FAULTY = {
    "another import": ("import no_such_module", "ModuleNotFoundError"),
    "a name of ours": (
        "LEARNERS = {'linear': Entry(small_learner(), 'another')}",
        "'linear' in LEARNERS is already defined by unlazy.learners.catalog",
    ),
    "a claim of ours": (
        "import dataclasses, unlazy.papers.shi2022 as p\n"
        "CLAIMS = [dataclasses.replace(p.CLAIMS[0], statement='Another.')]",
        "in CLAIMS is already defined by unlazy.papers.shi2022",
    ),
    "no entry": (
        "TASKS = {'mine/task': Halfspace(7)}",
        r"TASKS\['mine/task'\] must be Entry\(family, summary\), got Halfspace",
    ),
    "another kind": (
        "TASKS = {'mine/task': Entry(small_learner(), '')}",
        r"TASKS\['mine/task'\] must be Entry\(family, summary\)",
    ),
}


@pytest.mark.parametrize("fault", FAULTY)
def test_a_broken_plug_in_is_named_and_left_out(installed, fault):
    text, reason = FAULTY[fault]
    installed(f"from toys import Halfspace, small_learner\nfrom unlazy import Entry\n{text}")
    with pytest.warns(
        PluginWarning, match=f"The plug-in 'mine' of offering 1.0 is left out.*{reason}"
    ):
        assert registry.family_of("glasgow2023/task").d
    assert registry.claims()["shi2022/table1"].statement != "Another."
    (check,) = (each for each in health.signs(Path("none")) if each.what == "plug-in mine")
    assert not check.healthy and re.search(reason, check.found)


def test_a_plug_in_is_cited_by_the_prefix_of_its_names(installed):
    installed("""
        from toys import Halfspace
        from unlazy import Entry
        TASKS = {"mine/halfspace": Entry(Halfspace(7), "a halfspace")}
        BIBTEX = "@article{mine}"
    """)
    assert entries(["mine/halfspace"])[0] == entries(["mine"])[0] == "@article{mine}"
    (check,) = (each for each in health.signs(Path("none")) if each.what == "plug-in mine")
    assert check.healthy and check.found == "loaded from offering 1.0"


def test_parameters_of_a_family_are_changed_by_text():
    family = registry.family_of("glasgow2023/task", ["d=20"])
    assert family == dataclasses.replace(registry.family_of("glasgow2023/task"), d=20)
    for change, says in (
        ("d", "must be NAME=VALUE"),
        ("d=x", "must be an integer"),
        ("dd=3", "Did you mean 'd'"),
    ):
        with pytest.raises(BadInput, match=says):
            registry.family_of("glasgow2023/task", [change])
