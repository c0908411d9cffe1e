"""No test imports another test: what tests share lies in tests/support."""

from __future__ import annotations

import ast

from support.places import REPOSITORY


def test_no_test_imports_another_test():
    found = []
    for path in sorted((REPOSITORY / "tests").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                names = [node.module or "", *(alias.name for alias in node.names)]
                relative = node.level > 0
            elif isinstance(node, ast.Import):
                names, relative = [alias.name for alias in node.names], False
            else:
                continue
            parts = {part for name in names for part in name.split(".")}
            if relative or any(part.startswith("test_") or part == "tests" for part in parts):
                found.append(f"{path.name}:{node.lineno}")
    assert found == []
