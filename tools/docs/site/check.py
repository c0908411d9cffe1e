"""Check a built site: it loads nothing from the network, its links lead somewhere, it is small.

python -m tools.docs.site.check docs/_build/html
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

MOST_BYTES = 30e6
LOADS = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
"""Elements whose address a browser loads by itself, and the attribute that has it."""


STYLE_LOAD = re.compile(r"(?:url\(|@import)\s*[\"']?((?:https?:)?//[^\"')]+)")


class Page(HTMLParser):
    """The addresses that one page loads, those that it links to, and its anchors."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the addresses and the anchor of an element."""
        found = {key: value for key, value in attrs if value}
        self.anchors |= {found[key] for key in ("id", "name") if key in found}
        address = found.get(LOADS.get(tag, ""))
        if address and found.get("rel") != "canonical":
            self.loads.append(address)
        if tag == "a" and "href" in found:
            self.links.append(found["href"])


def problems(site: Path) -> Iterator[str]:
    """One line for every problem of a site."""
    found = [path for path in sorted(site.rglob("*.html")) if "_static" not in path.parts]
    pages = {path.resolve(): Page(path) for path in found}  # without the templates of the theme
    if not pages:
        yield f"{site} has no pages; build it with `make docs`"
    for path, page in pages.items():
        name = path.relative_to(site.resolve())
        for address in page.loads:
            if urlsplit(address).netloc:
                yield f"{name} loads {address} from the network"
        for address in [*page.loads, *page.links]:
            if leads_nowhere(path, address, pages):
                yield f"{name}: {address} leads nowhere"
    for style in sorted(site.rglob("*.css")):
        for address in STYLE_LOAD.findall(style.read_text(encoding="utf-8")):
            yield f"{style.relative_to(site)} loads {address} from the network"
    size = sum(path.stat().st_size for path in site.rglob("*") if path.is_file())
    if size > MOST_BYTES:
        yield f"the site has {size / 1e6:.0f} MB; at most {MOST_BYTES / 1e6:.0f} MB are wanted"


def leads_nowhere(path: Path, address: str, pages: dict[Path, Page]) -> bool:
    """Whether an address within the site names a file or an anchor that does not exist."""
    parts = urlsplit(address)
    if parts.scheme or parts.netloc:
        return False
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not target.exists():
        return True
    anchor = unquote(parts.fragment)
    return bool(anchor) and target in pages and anchor not in pages[target].anchors


def main() -> None:
    """Print the problems of the site that is named; exit code 1 if there are any."""
    found = list(problems(Path(sys.argv[1])))
    print("\n".join(found) or f"{sys.argv[1]}: no dead links, nothing from the network")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
