"""Write the map of the house into CONTRIBUTING.md, from the first lines of the modules.

    python tools/house_map.py

The map stands between two marks; a test keeps it up to date.
"""

from __future__ import annotations

import ast
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
PACKAGE = REPOSITORY / "src" / "plumecast"
PAGE = REPOSITORY / "CONTRIBUTING.md"
BEGIN, END = "<!-- map: written by tools/house_map.py -->", "<!-- end of the map -->"

ROOMS = (
    "base", "compute", "physics", "weather", "data", "sources", "simulator", "scores", "operators",
    "surrogate", "workflows", "impact", "paper", "app", "report", "cli",
)  # fmt: skip
"""From the bottom of the house to the top."""


def house_map() -> str:
    """Every room with its folders and modules."""
    lines = []
    for room in ROOMS:
        lines.append(f"- **`{room}/`** {_first_line(PACKAGE / room / '__init__.py')}")
        lines += _entries(PACKAGE / room, "  ")
    return "\n".join(lines)


def _entries(folder: Path, indent: str) -> list[str]:
    modules = [path.stem for path in sorted(folder.glob("*.py")) if not path.stem.startswith("__")]
    lines = [f"{indent}{', '.join(f'`{name}`' for name in modules)}"] if modules else []
    for inner in sorted(path.parent for path in folder.glob("*/__init__.py")):
        lines.append(f"{indent}- `{inner.name}/` {_first_line(inner / '__init__.py')}")
        lines += _entries(inner, f"{indent}  ")
    return lines


def _first_line(path: Path) -> str:
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return text.partition("\n")[0]


def page_with_map(page: str) -> str:
    """The page with the map of today between its marks."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{house_map()}\n\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page_with_map(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
