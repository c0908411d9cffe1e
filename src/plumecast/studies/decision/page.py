"""Write one self-contained HTML page for a planner from a folder of answers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2

from plumecast.base.errors import PlumecastError
from plumecast.base.files import write_text
from plumecast.impact.loss_result import ALL
from plumecast.studies.decision.folder import (
    COMMANDS,
    DIFFERENCE_MAPS,
    DIFFERENCES,
    ENERGY,
    MAPS,
    PLACES,
    Answer,
    Answers,
    read_answers,
)
from plumecast.studies.decision.pictures import difference_pictures, smoke_pictures
from plumecast.studies.decision.tables import (
    difference_tables,
    energy_parts,
    energy_table,
    place_table,
    places_in_order,
    units_of,
)
from plumecast.studies.decision.trust import assumptions, do_not_rely, trust
from plumecast.studies.decision.words import between, counted, number
from plumecast.studies.report.html import new_environment

MISSING = {
    MAPS: "Maps of smoke are",
    PLACES: "Smoke at towns is",
    DIFFERENCES: "A comparison of scenarios is",
    DIFFERENCE_MAPS: "A map of the differences between scenarios is",
    ENERGY: "The energy that solar plants lose is",
}


@dataclass(frozen=True, slots=True)
class Written:
    """A page, and what is not on it."""

    path: Path
    others: tuple[Path, ...]  # files of the folder that hold no answer
    missing: tuple[str, ...]  # kinds of answers


def write_decision(folder: str | Path, out: str | Path) -> Written:
    """Write the page of the results of `ensemble`, `compare` and `impact` in a folder."""
    answers = read_answers(folder)
    try:
        page = render(answers)
    except (jinja2.UndefinedError, KeyError, TypeError, AttributeError, IndexError) as error:
        # What the commands write is always whole, unless somebody edited it.
        names = ", ".join(sorted(item.path.name for item in answers.found.values()))
        raise PlumecastError(
            f"one of {names} in {answers.folder} is not complete "
            f"({type(error).__name__}: {error}); write it again"
        ) from error
    where = Path(out)
    write_text(where, page)
    return Written(where, answers.others, tuple(k for k in COMMANDS if answers.get(k) is None))


def render(answers: Answers) -> str:
    """The page as HTML text: maps, places, differences, energy, trust, assumptions."""
    maps, places, energy = (answers.get(kind) for kind in (MAPS, PLACES, ENERGY))
    compared, compared_maps = answers.get(DIFFERENCES), answers.get(DIFFERENCE_MAPS)
    pictures = [] if maps is None else smoke_pictures(maps, places)
    template = new_environment().get_template("decision.html")
    return template.render(
        lead=_lead(answers),
        warning=do_not_rely(answers),
        pictures=pictures,
        few_maps=maps is not None and len(pictures) < 3,
        maps_command=_command(answers, MAPS),
        places=None if places is None else place_table(places),
        places_lead=None if places is None else _places_lead(places),
        differences=[] if compared is None else difference_tables(compared, places),
        difference_pictures=[]
        if compared_maps is None
        else difference_pictures(compared_maps, places),
        energy=None if energy is None else energy_table(energy),
        energy_lead=None if energy is None else _energy_lead(energy),
        energy_parts=[] if energy is None else energy_parts(energy),
        missing=[
            (text, _command(answers, kind))
            for kind, text in MISSING.items()
            if answers.get(kind) is None
        ],
        trust=trust(answers),
        assumptions=assumptions(answers),
    )


def _command(answers: Answers, kind: str) -> str:
    return COMMANDS[kind].format(folder=answers.folder)


def _lead(answers: Answers) -> str:
    """What the page is about, in one sentence."""
    asked = {
        "where it goes": answers.get(MAPS), "how much of it towns get": answers.get(PLACES),
        "what changes it": answers.get(DIFFERENCES) or answers.get(DIFFERENCE_MAPS),
        "what it costs in solar energy": answers.get(ENERGY),
    }  # fmt: skip
    parts = [text for text, item in asked.items() if item is not None]
    said = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
    main: Any = answers.get(MAPS) or answers.get(PLACES) or answers.get(ENERGY)
    fires = "" if main is None else f" of {counted(int(main.attrs['fires']), 'fire')}"
    return f"Smoke{fires}: {said}."


def _places_lead(places: Answer) -> str:
    """The smokiest place, in a sentence."""
    order, unit = places_in_order(places), units_of(places)
    first, level = order[0], 100 * float(places.attrs["coverage"])
    ends = between(first["mean_lower"], first["mean_upper"])
    start = f"Of {counted(len(order), 'place')}, {first['name']} gets" if len(order) > 1 else ""
    most = " the most smoke," if len(order) > 1 else ""
    return (
        f"{start or first['name'] + ' gets'}{most} {number(first['mean'])} {unit} in the mean over "
        f"fires ({level:g} % interval {ends})."
    )


def _energy_lead(energy: Answer) -> str:
    """What all plants lose, in a sentence."""
    whole = next(row for row in energy.rows if row["plant"] == ALL)
    attrs = energy.attrs
    level = 100 * float(attrs["coverage"])
    hours = attrs.get("hours_after_ignition")
    until = "" if hours is None else f" in the {hours:g} h after ignition"
    ends = between(whole["lost_mwh_lower_total"], whole["lost_mwh_upper_total"], unit=" MWh")
    return (
        f"In the mean over {counted(int(attrs['fires']), 'fire')}, all plants together lose "
        f"{number(whole['lost_mwh'])} MWh ({level:g} % interval {ends}), "
        f"{number(whole['lost_percent'])} % of what they would give under a clear sky{until}."
    )
