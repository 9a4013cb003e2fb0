from pathlib import Path

import pytest
from sklearn.ensemble import RandomForestRegressor

import unlazy
from toys import Halfspace, hand_record, toy_trial
from unlazy.core.naming import Ingredients
from unlazy.kernels.stationary import RBF
from unlazy.lab import provenance
from unlazy.lab.provenance import Fingerprint, changes, computing, fingerprint_of, made_by, summary
from unlazy.learners.kernel import KernelRidge


def test_all_computing_modules_but_papers_are_hashed_for_users_code():
    root = Path(unlazy.__file__).parent
    names = {path.relative_to(root).as_posix() for path in computing(root)}
    assert {"networks/two_layer.py", "learners/gradient.py", "lab/engines/local.py"} <= names
    assert not any(name.startswith(("report/", "lab/store", "cli", "papers/")) for name in names)


def test_the_hash_follows_the_content(tmp_path, monkeypatch):
    package = tmp_path / "unlazy"
    files = ("networks/base.py", "lab/engines/local.py", "cli/main.py", "papers/one/claims.py")
    for name in ("__init__.py", *files):
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text("a = 1\n")
    monkeypatch.setattr(provenance.unlazy, "__file__", str(package / "__init__.py"))
    hashes = [provenance.source_hash.__wrapped__()]
    for name in files:
        (package / name).write_text("a = 2\n")
        hashes.append(provenance.source_hash.__wrapped__())
    assert len(set(hashes[:3])) == 3 and len(set(hashes[2:])) == 1


def test_a_fingerprint_has_code_libraries_data_and_the_users_own():
    ours = fingerprint_of(Ingredients({RBF, KernelRidge}, {"a.csv": "1"}))
    assert "unlazy.kernels.stationary" in ours.code and "unlazy" not in ours.code
    assert ours.data == {"a.csv": "1"} and not ours.own and "jax" in ours.libraries
    users = fingerprint_of(Ingredients({RBF, Halfspace}))
    assert users.code["unlazy"] == provenance.source_hash(), "it may call anything of ours"
    assert [name.partition("#")[0] for name in users.own] == ["Halfspace"]
    assert "sklearn" in fingerprint_of(Ingredients({RandomForestRegressor})).libraries


@pytest.mark.parametrize("part", ["code", "libraries", "data", "own"])
def test_every_component_makes_another_fingerprint(part):
    fields = {"code": {}, "libraries": {}, "data": {}, "own": {}}
    one, other = (Fingerprint(**fields | {part: {"x": value}}) for value in ("1", "2"))
    assert one.id != other.id and len({one.id, Fingerprint(**fields).id}) == 2
    assert one.id == Fingerprint(**fields | {part: {"x": "1"}}).id


def test_changes_are_named():
    old = {"code": {"unlazy.kernels.wide": "a"}, "libraries": {"jax": "1"}, "data": {"t": "a"}}
    new = {
        "code": {"unlazy.kernels.wide": "b", "unlazy.core.random": "a"},
        "libraries": {"jax": "2", "torch": "1"},
        "data": {"t": "b"},
        "own": {"Mine#1": ""},
    }
    assert changes(old, new) == [
        *("core.random", "kernels.wide", "Mine", "jax 1 → 2", "torch absent → 1", "t")
    ]
    assert changes(old, old) == []


def test_an_outcome_has_the_provenance_of_its_records():
    trials = [toy_trial(seed) for seed in range(2)]
    prints = (trials[0].fingerprint.id, "older")
    own = [hand_record(t.key, fingerprint=f) for t, f in zip(trials, prints, strict=True)]
    told = made_by([*zip(trials, own, strict=True), (trials[0], own[0])])
    assert (told["records"], told["older"], told["unlazy"]) == (2, 1, ["0"])
    assert told["fingerprints"] == sorted(prints)
    assert summary([{"jax": "1"}, {"jax": "2", "x": 1}]) == {"jax": ["1", "2"], "x": ["1"]}
