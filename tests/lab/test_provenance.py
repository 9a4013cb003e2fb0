from pathlib import Path

import unlazy
from unlazy.lab import provenance


def test_what_computes_is_hashed_and_what_reports_is_not():
    root = Path(unlazy.__file__).parent
    names = {path.relative_to(root).as_posix() for path in provenance.computing(root)}
    assert {
        "networks/two_layer.py",
        "learners/gradient.py",
        "papers/shi2022/constants.py",
        "lab/engines/local.py",
        "solvers/krylov.py",
    } <= names
    assert not any(name.startswith(("report/", "lab/store", "cli")) for name in names)
    assert all((root / name).exists() for name in provenance.NOT_COMPUTING), (
        "a name in the list does not exist any more"
    )


def test_the_hash_follows_the_content(tmp_path, monkeypatch):
    package = tmp_path / "unlazy"
    for name in (
        "__init__.py",
        "networks/base.py",
        "cli/main.py",
        f"{provenance.ENGINES}/local.py",
    ):
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text("a = 1\n")
    monkeypatch.setattr(provenance.unlazy, "__file__", str(package / "__init__.py"))
    hashes = [provenance.source_hash.__wrapped__()]
    for name in ("networks/base.py", f"{provenance.ENGINES}/local.py", "cli/main.py"):
        (package / name).write_text("a = 2\n")
        hashes.append(provenance.source_hash.__wrapped__())
    assert len(set(hashes[:3])) == 3 and hashes[3] == hashes[2]
