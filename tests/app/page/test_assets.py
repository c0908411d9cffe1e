"""The files of the live page: parts that belong together agree, and colours are readable."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import pytest

PAGE = Path(str(files("plumecast"))) / "app" / "assets" / "page"
HTML = (PAGE / "index.html").read_text(encoding="utf-8")
CSS = (PAGE / "style.css").read_text(encoding="utf-8")
MODULES = sorted(PAGE.rglob("*.js"))
READABLE = 4.5  # contrast of text, WCAG 2.1 level AA
VISIBLE = 3.0  # contrast of borders of controls and of lines in charts, WCAG 2.1 level AA
MOST_LINES = 400
CONTROLS = ("input", "select", "textarea", "progress")


class Elements(HTMLParser):
    """Every element of the page as (name, attributes)."""

    def __init__(self) -> None:
        super().__init__()
        self.all: list[tuple[str, dict[str, str | None]]] = []
        self.open_labels = 0
        self.inside_label: set[str | None] = set()

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.all.append((tag, attributes))
        if tag == "label":
            self.open_labels += 1
        if self.open_labels:
            self.inside_label.add(attributes.get("id"))

    def handle_endtag(self, tag):
        self.open_labels -= tag == "label"


@pytest.fixture(scope="module")
def elements():
    parser = Elements()
    parser.feed(HTML)
    return parser


def test_no_script_and_no_style_is_inline(elements):
    for name, attributes in elements.all:
        assert name != "style"
        assert name != "script" or attributes.get("src")
        assert "style" not in attributes
        assert [key for key in attributes if key.startswith("on")] == []
    assert "http:" not in HTML + CSS
    assert "https:" not in HTML + CSS


def test_every_id_is_there_once_and_every_id_that_is_named_is_there(elements):
    ids = [attributes["id"] for _, attributes in elements.all if "id" in attributes]
    assert len(ids) == len(set(ids))
    named = set()
    for _, attributes in elements.all:
        for key in ("for", "aria-controls", "aria-labelledby", "aria-describedby"):
            named |= set((attributes.get(key) or "").split())
    for module in MODULES:
        named |= set(re.findall(r'find\("([a-z-]+)"\)', module.read_text(encoding="utf-8")))
    assert named - set(ids) == set()


def test_every_control_has_a_label(elements):
    labelled = {attributes.get("for") for name, attributes in elements.all if name == "label"}
    for name, attributes in elements.all:
        if name in CONTROLS and attributes.get("type") != "radio":
            assert attributes["id"] in labelled | elements.inside_label, attributes
        if attributes.get("role") == "tabpanel":
            assert attributes["aria-labelledby"]


def test_every_import_is_there_and_every_module_is_imported():
    imported = {(PAGE / "main.js").resolve()}
    for module in MODULES:
        text = module.read_text(encoding="utf-8")
        assert len(text.splitlines()) <= MOST_LINES, module
        for names, target in re.findall(r'import \{([^}]*)\} from "([^"]+)"', text):
            source = (module.parent / target).resolve()
            exported = re.findall(r"export (?:async )?(?:const|let|function|class) (\w+)",
                                  source.read_text(encoding="utf-8"))  # fmt: skip
            for name in filter(None, map(str.strip, names.split(","))):
                assert name in exported, f"{module.name}: {name}"
                assert len(re.findall(rf"\b{name}\b", text)) > 1, f"{module.name}: {name} is unused"
            imported.add(source)
    assert {module.resolve() for module in MODULES} <= imported


def colours_of(theme):
    """The custom properties of a theme that are colours."""
    selector = ":root {" if theme == "light" else ':root[data-theme="dark"] {'
    block = CSS[CSS.index(selector) :].partition("}")[0]
    return dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6});", block))


def luminance(colour):
    """Relative luminance of WCAG 2.1: 0.2126 R + 0.7152 G + 0.0722 B of linear parts."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    """(L₁ + 0.05) / (L₂ + 0.05) of the lighter and the darker colour."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours_have_the_contrast_of_level_aa(theme):
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)
    colours = colours_of(theme)
    for ground in ("ground", "panel"):
        for text in ("ink", "quiet", "accent", "trouble"):
            assert contrast(colours[text], colours[ground]) >= READABLE, (text, ground)
        for part in ("control", "surface-wind", "aloft-wind", *(f"hue{n}" for n in range(5))):
            assert contrast(colours[part], colours[ground]) >= VISIBLE, (part, ground)
    assert contrast(colours["on-accent"], colours["accent"]) >= READABLE
