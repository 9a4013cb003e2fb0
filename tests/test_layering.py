"""Architecture: layers with imports in one direction, unique names, and short files."""

import ast
from collections import Counter
from pathlib import Path

import unlazy

ROOT = Path(unlazy.__file__).parent
#: Each layer may import from those before it.
LAYERS = (
    *("core", "tasks", "networks", "kernels", "solvers", "learners", "probes"),
    *("theory", "lab", "papers", "estimators", "tables", "studies", "report", "play", "cli"),
)
#: Modules outside of the layers. Only the command line imports `api`, the content of `unlazy`.
OUTSIDE = ("api.py", "__init__.py", "__main__.py")
FILES = sorted(ROOT.rglob("*.py"))


def imported(path, *, deferred=False):
    """Yield modules of the package that a file imports at its top; with `deferred`, also in
    functions.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    checking = {
        id(n)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for n in ast.walk(node)
    }
    nodes = ast.walk(tree) if deferred else tree.body
    for node in nodes:
        if (
            isinstance(node, ast.ImportFrom)
            and (node.module or "").startswith("unlazy.")
            and id(node) not in checking
        ):
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("unlazy."))


def layer_of(path):
    return path.relative_to(ROOT).parts[0]


def wrong_imports(files, root=ROOT):
    """Return imports against the order of the layers, or from one paper to another."""
    found = []
    for path in files:
        parts = path.relative_to(root).parts
        if parts[0] not in LAYERS:
            continue
        for module in imported(path):
            _, layer, *rest = module.split(".")
            if layer == "api":
                if parts[0] != "cli":
                    found.append(f"{'/'.join(parts)} imports {module}")
                continue
            if LAYERS.index(layer) > LAYERS.index(parts[0]):
                found.append(f"{'/'.join(parts)} imports {module}")
            if parts[0] == layer == "papers" and len(parts) > 2 and rest and rest[0] != parts[1]:
                found.append(f"{'/'.join(parts)} takes {module} from another paper")
    return found


def test_every_file_is_in_a_layer():
    assert {layer_of(path) for path in FILES} == {*LAYERS, *OUTSIDE}


def test_imports_go_one_way():
    assert wrong_imports(FILES) == []


def test_an_import_the_other_way_would_be_seen(tmp_path):
    (tmp_path / "tasks").mkdir()
    (tmp_path / "papers" / "one").mkdir(parents=True)
    (tmp_path / "tasks" / "bad.py").write_text("from unlazy.learners.base import Learner\n")
    (tmp_path / "papers" / "one" / "bad.py").write_text(
        "from unlazy.papers.two.claims import CLAIM\n"
    )
    found = wrong_imports(sorted(tmp_path.rglob("*.py")), tmp_path)
    assert len(found) == 2 and "tasks/bad.py imports unlazy.learners.base" in found


def test_learners_do_not_depend_on_task_families():
    """Learners may use the data interface and circuits, but no family."""
    allowed = {
        "unlazy.tasks.base",
        *(
            f"unlazy.tasks.circuits.{name}"
            for name in ("bits", "circuit", "distributions", "statistics", "families", "recovery")
        ),
    }
    for path in (ROOT / "learners").rglob("*.py"):
        assert {
            module for module in imported(path, deferred=True) if module.startswith("unlazy.tasks")
        } <= allowed, path


def test_no_two_classes_have_one_name():
    """Keys of trials contain class names."""
    names = Counter(
        node.name
        for path in FILES
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef)
    )
    assert [name for name, count in names.items() if count > 1] == []


def test_module_names_have_one_meaning():
    """A module name, such as `scaling`, has the same meaning in every layer."""
    stems = Counter(path.stem for path in FILES if path.stem not in ("__init__", "base", "catalog"))
    many = {stem for stem, count in stems.items() if count > 3}
    assert many <= {
        *("probes", "computations", "learner", "errata", "rows", "setting", "readings")
    }, many


#: Maximum lengths of files with more than 400 lines.
LONGER = {
    "estimators/network.py": 486,
    "lab/engines/pools/slurm.py": 427,
    "learners/sources.py": 409,
    "tasks/circuits/families.py": 436,
    "tasks/images/families.py": 433,
}


def test_files_are_short():
    lengths = {
        path.relative_to(ROOT).as_posix(): len(path.read_text(encoding="utf-8").splitlines())
        for path in FILES
    }
    assert {name: n for name, n in lengths.items() if n > LONGER.get(name, 400)} == {}
    assert all(lengths[name] > 400 for name in LONGER), "a file no longer needs its exception"
