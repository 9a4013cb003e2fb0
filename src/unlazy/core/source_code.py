"""Source code that a class or function depends on, definition by definition.

A fingerprint shows whether code could now compute a different number. It contains the top-level
definitions (classes, functions, constants) reachable by name from a root, through imports, within
the computing modules of the package. Docstrings, comments, annotations and layout do not count.
Unreachable definitions, such as the text of a claim, do not count either.

The reachable set is an over-approximation: a name counts as used if it is mentioned. Top-level
statements that define nothing (a configuration call) count if the module is reached. Methods called
on an argument are covered by the class of that argument, which is a root itself.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import hashlib
from collections.abc import Iterable
from pathlib import Path

PACKAGE = "unlazy"
ROOT = Path(__file__).parents[1]
#: Folders and modules on which no measurement depends.
NOT_COMPUTING = (
    *("cli", "report", "play", "lab", "api", "__main__"),
    *("core.naming", "core.source_code", "core.user_code", "core.deprecation"),
)
#: Modules of `lab` that do compute.
COMPUTING = (
    "lab.engines.local",
    "lab.engines.programs",
    "lab.statistics",
    "lab.power_laws",
)

#: A definition: its module and its name; the name "" means the whole module.
Location = tuple[str, str]


@dataclasses.dataclass
class Definition:
    """Top-level statement: its syntax tree, and the names and module attributes it mentions."""

    node: ast.stmt

    @functools.cached_property
    def stripped(self) -> ast.stmt:
        """The statement without docstrings and annotations."""
        found: ast.stmt = _Strip().visit(self.node)
        return found

    @functools.cached_property
    def digest(self) -> str:
        return hashlib.sha256(_written(self.stripped).encode()).hexdigest()[:16]

    @functools.cached_property
    def uses(self) -> frozenset[Location]:
        """Names in the statement, each with the attribute accessed on it, or ""."""
        found: set[Location] = set()
        waiting: list[ast.AST] = [self.stripped]
        while waiting:
            node = waiting.pop()
            if isinstance(node, ast.Attribute):
                chain = []
                inner: ast.AST = node
                while isinstance(inner, ast.Attribute):
                    chain.append(inner.attr)
                    inner = inner.value
                if isinstance(inner, ast.Name):
                    found.add((inner.id, ".".join(reversed(chain))))
                else:
                    waiting.append(inner)
                continue
            if isinstance(node, ast.Name):
                found.add((node.id, ""))
            waiting.extend(ast.iter_child_nodes(node))
        return frozenset(found)

    @functools.cached_property
    def imports(self) -> dict[str, Location]:
        """Imports inside the statement, as in functions."""
        return _imports(node for node in ast.walk(self.stripped))


def _written(node: object) -> str:
    """Return a syntax tree as text that is the same for all versions of Python.

    Unlike `ast.dump` it leaves out all empty fields: a new version of Python may add some.
    """
    if isinstance(node, ast.AST):
        fields = ((name, getattr(node, name, None)) for name in node._fields)
        inner = ",".join(f"{n}={_written(v)}" for n, v in fields if v is not None and v != [])
        return f"{type(node).__name__}({inner})"
    if isinstance(node, list):
        return f"[{','.join(map(_written, node))}]"
    return repr(node)


class _Strip(ast.NodeTransformer):
    def _body(self, node: ast.AST) -> ast.AST:
        body = getattr(node, "body", None)
        if (
            isinstance(body, list)
            and body
            and isinstance(body[0], ast.Expr)
            and isinstance(body[0].value, ast.Constant)
            and isinstance(body[0].value.value, str)
        ):
            body[:] = body[1:] or [ast.Pass()]
        return self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return self._body(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self._body(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        node.returns = None
        return self._body(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = ast.Constant(value=None)
        return self.generic_visit(node)


class Module:
    """Module of the package, by its definitions."""

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self.definitions: dict[str, list[Definition]] = {}
        self.always: list[Definition] = []
        tree = ast.parse(self._read(path))
        self.imports = _imports(tree.body)
        for node in tree.body:
            if isinstance(node, (ast.Import, ast.ImportFrom)) or _is_text(node):
                continue
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
                continue
            entry = Definition(node)
            bound = _bound(node)
            bound += [name for name in _decorating(node) if name in self.definitions]
            for each in bound:
                self.definitions.setdefault(each, []).append(entry)
            if not bound:
                self.always.append(entry)

    def _read(self, path: Path) -> bytes:
        return path.read_bytes()

    def of(self, name: str) -> list[Definition]:
        """Return the definitions under a name, or all of them for ""."""
        if name:
            return self.definitions.get(name, [])
        return list({id(e): e for each in self.definitions.values() for e in each}.values())


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _bound(node: ast.stmt) -> list[str]:
    """Return the names that a top-level statement defines or modifies."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [node.name]
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, (ast.AnnAssign, ast.AugAssign)):
        targets = [node.target]
    elif isinstance(node, (ast.For, ast.If, ast.With, ast.Try)):
        inner = [child for child in ast.walk(node) if isinstance(child, ast.stmt)][1:]
        return [name for child in inner for name in _bound(child)]
    return [
        each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)
    ]


def _decorating(node: ast.stmt) -> list[str]:
    """Return objects whose methods decorate a function, as `f` in `@f.defjvp`."""
    decorators = getattr(node, "decorator_list", ())
    return [
        each.value.id
        for each in decorators
        if isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name)
    ]


def _imports(nodes: Iterable[ast.AST]) -> dict[str, Location]:
    """Return the names bound by imports: the module, and the name in it or "" for the module."""
    found: dict[str, Location] = {}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == PACKAGE:
            for alias in node.names:
                found[alias.asname or alias.name] = (str(node.module), alias.name)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == PACKAGE:
                    bound = alias.asname or PACKAGE
                    found[bound] = (alias.name if alias.asname else PACKAGE, "")
    return found


@functools.cache
def module_of(name: str) -> Module | None:
    """Return a computing module of the package by name, or None for any other."""
    if not is_computing(name):
        return None
    base = ROOT.joinpath(*name.split(".")[1:])
    for path in (base.with_suffix(".py"), base / "__init__.py"):
        if path.is_file():
            return Module(name, path)
    return None


def is_computing(name: str) -> bool:
    """Return whether measurements can depend on a module."""
    package, _, inner = name.partition(".")
    if package != PACKAGE or not inner:
        return False
    return inner in COMPUTING or not {inner, inner.split(".")[0]} & {*NOT_COMPUTING}


def reached(roots: Iterable[Location]) -> dict[str, str]:
    """Return a digest of the reached definitions for each module that the roots reach."""
    return {
        name: hashlib.sha256(" ".join(sorted(e.digest for e in entries)).encode()).hexdigest()[:16]
        for name, entries in sorted(reach(roots).items())
    }


def reach(roots: Iterable[Location]) -> dict[str, list[Definition]]:
    """Return the definitions that the roots reach, by module."""
    waiting, seen = list(roots), set[Location]()
    found: dict[str, dict[int, Definition]] = {}
    while waiting:
        location = waiting.pop()
        if location in seen:
            continue
        seen.add(location)
        module = module_of(location[0])
        if module is None:
            continue
        known = found.setdefault(module.name, {})
        new = module.of(location[1])
        if not location[1]:
            waiting.extend(
                p for imported in module.imports.values() for p in _resolved(imported, "")
            )
        elif not new and location[1] in module.imports:  # re-exported by a package
            waiting.extend(_resolved(module.imports[location[1]], ""))
        for entry in (*new, *module.always):
            if id(entry) not in known:
                known[id(entry)] = entry
                waiting.extend(_mentioned(module, entry))
    return {name: list(entries.values()) for name, entries in found.items() if entries}


def _mentioned(module: Module, entry: Definition) -> list[Location]:
    found: list[Location] = []
    for name, attribute in entry.uses:
        if (location := entry.imports.get(name) or module.imports.get(name)) is not None:
            found += _resolved(location, attribute)
        if name in module.definitions:
            found.append((module.name, name))
    return found


def _resolved(location: Location, attributes: str) -> list[Location]:
    """Return the definitions behind an imported name; `from a import b` may bind a module."""
    module, name = location
    if name and module_of(f"{module}.{name}") is not None:
        module, name = f"{module}.{name}", ""
    if name:
        return [(module, name)]
    while attributes:
        first, _, rest = attributes.partition(".")
        if module_of(f"{module}.{first}") is None:
            return [(module, first)]
        module, attributes = f"{module}.{first}", rest
    return [(module, "")]
