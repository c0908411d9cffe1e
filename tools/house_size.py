"""Measure the size of the house: lines, modules, imports, parameters, names that occur twice.

python tools/house_size.py              # this tree
python tools/house_size.py OTHER/TREE   # another one, such as a clone of an earlier version
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

SHORT = 60
"""Modules with fewer lines belong into a neighbour."""

MOST_PARAMETERS = 10

Trees = dict[Path, ast.Module]


def parsed(folder: Path) -> Trees:
    """The syntax tree of every module below a folder."""
    paths = sorted(folder.rglob("*.py"))
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in paths}


def count_lines(folder: Path) -> int:
    """All lines of the modules below a folder."""
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in folder.rglob("*.py"))


def parameters(function: ast.FunctionDef) -> int:
    """The number of parameters, `**settings` not counted."""
    arguments = function.args
    return len(arguments.posonlyargs) + len(arguments.args) + len(arguments.kwonlyargs)


def importers(trees: Trees, package: Path) -> Counter[str]:
    """How many other modules import each module of the package."""
    names = {module_name(path, package) for path in trees}
    found: Counter[str] = Counter()
    for path, tree in trees.items():
        here = module_name(path, package)
        found.update({name for name in imported(tree) if name in names and name != here})
    return found


def imported(tree: ast.Module) -> Iterator[str]:
    """The modules that a module imports, by name; of `from a import b` both `a` and `a.b`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def module_name(path: Path, package: Path) -> str:
    """plumecast.room.module of a file."""
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def measures(root: Path) -> dict[str, int]:
    """What is measured of a tree, by name."""
    package = root / "src" / "plumecast"
    trees = parsed(package)
    modules = {path: tree for path, tree in trees.items() if path.name != "__init__.py"}
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in modules}
    used = importers(trees, package)
    nodes = [(path, node) for path, tree in trees.items() for node in ast.walk(tree)]
    functions = [node for _, node in nodes if isinstance(node, ast.FunctionDef)]
    classes = Counter(node.name for _, node in nodes if isinstance(node, ast.ClassDef))
    return {
        "lines of src": count_lines(package),
        "modules of src": len(trees),
        "… that are short": sum(length < SHORT for length in lengths.values()),
        "… with one importer": sum(used[module_name(path, package)] == 1 for path in modules),
        "lines of imports": sum(
            (node.end_lineno or node.lineno) - node.lineno + 1
            for _, node in nodes
            if isinstance(node, (ast.Import, ast.ImportFrom))
        ),
        "functions": len(functions),
        f"… with more than {MOST_PARAMETERS} parameters": sum(
            parameters(function) > MOST_PARAMETERS for function in functions
        ),
        "class names that occur twice": sum(count > 1 for count in classes.values()),
        "lines of tests": count_lines(root / "tests"),
    }


def main() -> None:
    """Print the measures, then the lines and modules of every room."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[1]
    for name, value in measures(root).items():
        print(f"{name:40s} {value:6d}")
    for room in sorted(path.parent for path in (root / "src" / "plumecast").glob("*/__init__.py")):
        print(f"  {room.name:38s} {count_lines(room):6d} {len(list(room.rglob('*.py'))):6d}")


if __name__ == "__main__":
    main()
