"""Write the page for a planner: smoke at places, differences, its cost, and how far to trust it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2

from plumecast.base.errors import PlumecastError
from plumecast.base.files import write_text
from plumecast.base.names import SMOKE
from plumecast.base.version import __version__
from plumecast.impact.optics import KNOWN_DEPTH
from plumecast.report import new_environment, tables
from plumecast.report.answers import (
    COMMANDS,
    DIFFERENCE_MAPS,
    DIFFERENCES,
    ENERGY,
    MAPS,
    PLACES,
    Answer,
    Answers,
    between,
    counted,
    number,
    read_answers,
)
from plumecast.scores.quantities import QUANTITIES
from plumecast.workflows.held_out.record import MODEL, NO_ERROR_BARS

MISSING = {
    MAPS: "Maps of smoke are",
    PLACES: "Smoke at towns is",
    DIFFERENCES: "A comparison of scenarios is",
    DIFFERENCE_MAPS: "A map of the differences between scenarios is",
    ENERGY: "The energy that solar plants lose is",
}


@dataclass(frozen=True, slots=True)
class PlannerPage:
    """A page, and what is not on it."""

    path: Path
    others: tuple[Path, ...]  # files of the folder that hold no answer
    missing: tuple[str, ...]  # kinds of answers


def write_decision(folder: str | Path, out: str | Path) -> PlannerPage:
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
    return PlannerPage(where, answers.others, tuple(k for k in COMMANDS if answers.get(k) is None))


def render(answers: Answers) -> str:
    """The page as HTML text: maps, places, differences, energy, trust, assumptions."""
    maps, places, energy = (answers.get(kind) for kind in (MAPS, PLACES, ENERGY))
    compared, compared_maps = answers.get(DIFFERENCES), answers.get(DIFFERENCE_MAPS)
    pictures = tables.smoke_pictures(maps, places) if maps else []
    commands = {kind: text.format(folder=answers.folder) for kind, text in COMMANDS.items()}
    return (
        new_environment()
        .get_template("decision.html")
        .render(
            lead=_lead(answers),
            premises=premises(answers),
            one_fire=maps is not None and tables.is_one(maps),
            warning=do_not_rely(answers),
            pictures=pictures,
            few_maps=maps is not None and not tables.is_one(maps) and len(pictures) < 3,
            maps_command=commands[MAPS],
            places=tables.place_table(places) if places else None,
            places_lead=_places_lead(places) if places else None,
            differences=tables.difference_tables(compared) if compared else [],
            difference_pictures=tables.difference_pictures(compared_maps, places)
            if compared_maps
            else [],
            energy=tables.energy_table(energy) if energy else None,
            energy_lead=_energy_lead(energy) if energy else None,
            energy_parts=tables.energy_parts(energy) if energy else [],
            missing=[
                (text, commands[kind]) for kind, text in MISSING.items() if not answers.get(kind)
            ],
            trust=trust(answers),
            assumptions=assumptions(answers),
        )
    )


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


_NAMED = 3
"""Places that a sentence names."""


def _places_lead(places: Answer) -> str:
    """The smokiest place, in a sentence."""
    every, unit = tables.places_in_order(places), tables.units_of(places)
    order = [
        row for row in every if row["mean"] not in (None, "")
    ] or every  # none outside the grid
    first, others = order[0], order[1:]
    ends = between(first["mean_lower"], first["mean_upper"])
    over = "" if tables.is_one(places) else " in the mean over fires"
    smoke = f"{number(first['mean'])} {unit}{over} ({tables.level_of(places)} interval {ends})"
    if not others:
        return f"{first['name']} gets {smoke}."
    low = first["mean_lower"]
    alike = [
        str(row["name"])
        for row in others
        if low is None or row["mean_upper"] is None or row["mean_upper"] >= low
    ]
    if not alike:
        return f"Of {counted(len(order), 'place')}, {first['name']} gets the most smoke, {smoke}."
    more = len(alike) - _NAMED
    names = [*alike[:_NAMED], counted(more, "other")] if more > 0 else alike
    named = f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]
    return (
        f"Of {counted(len(order), 'place')}, {first['name']} has the largest value, {smoke}. Its "
        f"interval overlaps {'those' if len(alike) > 1 else 'that'} of {named}: which place gets "
        "the most is not settled."
    )


def _energy_lead(energy: Answer) -> str:
    """What all plants lose, in a sentence."""
    whole, attrs = tables.whole_of(energy), energy.attrs
    hours = attrs.get("hours_after_ignition")
    until = "" if hours is None else f" in the {hours:g} h after ignition"
    ends = between(whole["lost_mwh_lower_total"], whole["lost_mwh_upper_total"], unit=" MWh")
    return (
        f"In the mean over {counted(int(attrs['fires']), 'fire')}, all plants together lose "
        f"{number(whole['lost_mwh'])} MWh ({tables.level_of(energy)} interval {ends}), "
        f"{number(whole['lost_percent'])} % of what they would give under a clear sky{until}."
    )


# -- How far to trust the answers, and what was assumed

FEW = 9
"""Ignitions below which 90 % cannot be promised by any method."""


def trust(answers: Answers) -> list[tuple[str, str]]:
    """What a reader must know before the numbers are used: a heading and a text each."""
    model, maps = _with_model(answers), answers.get(MAPS)
    main, energy, compared = (
        maps or answers.get(PLACES),
        answers.get(ENERGY),
        answers.get(DIFFERENCES),
    )
    texts = [_meaning(model)]
    texts += [] if main is None else [_fires(main), ("Intervals.", _intervals(main))]
    texts += [] if model is None else [("Predicted smoke.", _predicted(model))]
    texts += [] if maps is None else [_beyond(maps)]
    notes = () if compared is None else compared.notes
    texts += [("Differences.", f"{text[:1].upper()}{text[1:]}.") for text in notes]
    texts += [] if energy is None else _energy(energy)
    joined: dict[str, list[str]] = {}
    for heading, text in texts:
        joined.setdefault(heading, []).append(text)
    return [(heading, " ".join(parts)) for heading, parts in joined.items()]


def premises(answers: Answers) -> list[str]:
    """What all numbers rest on, for the top of the page: the fires, their weather, training."""
    main = answers.get(MAPS) or answers.get(PLACES) or answers.get(ENERGY)
    model, texts = _with_model(answers), []
    if main is not None and main.attrs.get("fires_from"):
        origin = re.sub(r", version [^;]*", "", str(main.attrs["fires_from"]))
        drawn = origin.startswith("simulated")
        texts.append(
            f"Fires and their weather are drawn at random, not observed ({origin})."
            if drawn
            else f"The fires are those of {origin}."
        )
    if model is not None and "model_weather" in model.attrs:
        texts.append(f"Weather that the model uses: {model.attrs['model_weather']}.")
    beyond = [item for kind in (MAPS, PLACES) if (item := answers.get(kind)) is not None]
    beyond = [item for item in beyond if "snapshots_beyond_training" in item.attrs]
    if beyond:
        heading, text = _beyond(beyond[0])
        texts.append(f"{heading.rstrip('.')}: {text[:1].lower()}{text[1:]}")
    return texts


def do_not_rely(answers: Answers) -> str | None:
    """Why the predictions should not be used; None if nothing speaks against them."""
    model = _with_model(answers)
    if model is None or model.attrs.get("model_beats_baselines", 1):
        return None
    return f"Tested on fires that the model had not learned from, {model.attrs['model_verdict']}."


def _meaning(model: Answer | None) -> tuple[str, str]:
    output = SMOKE if model is None else str(model.attrs.get("model_output", SMOKE))
    if output != SMOKE:
        return f"Smoke here is the variable '{output}'.", "The model was trained to predict it."
    return "Smoke here is that of the whole column of air.", (
        "It is the mean over the height of the air column, as seen from above, not the "
        "concentration that people breathe at the ground."
    )


def _with_model(answers: Answers) -> Answer | None:
    return next((item for item in answers.found.values() if MODEL in item.attrs), None)


def _fires(main: Answer) -> tuple[str, str]:
    fires, ignitions = int(main.attrs["fires"]), int(main.attrs.get("ignitions", 0))
    text = f"The answers rest on {counted(fires, 'fire')}"
    if not ignitions:
        return "Number of fires.", f"{text}; without names of the fires there are no intervals."
    text += f" from {counted(ignitions, 'ignition')} (a place and time where a fire starts)."
    if 1 < ignitions < FEW:
        text += " These are few: the intervals are wide, and rare events may be missing entirely."
    return "Number of fires.", text


def _intervals(main: Answer) -> str:
    attrs = main.attrs
    if "coverage" not in attrs:
        return "There are none: the fires have no names (fire_id)."
    share = f"{100 * float(attrs['coverage']):g}"
    text = f"An interval is made to contain the true value in {share} of 100 such studies."
    if tables.is_one(main):
        return (
            "There is one ignition: an interval is the error bar of its prediction, where the "
            "model has one. It says nothing of other fires."
        )
    if "true_ignitions" in attrs:
        true = counted(int(attrs["true_ignitions"]), "ignition")
        return (
            f"{text} It contains the chance choice of fires and the error of the predictions, "
            f"which were checked against true smoke of {true} that the model had not seen."
        )
    if "calibration_ignitions" in attrs:
        seen = counted(int(attrs["calibration_ignitions"]), "ignition")
        return (
            f"{text} Those of means and chances contain the chance choice of fires and the error "
            f"of the predictions, measured on {seen} that a fit of the model had not seen, for "
            "fires like those of training. Percentiles are those of the predictions, without this "
            "correction."
        )
    return (
        f"{text} It contains the chance choice of fires, but not the error of the predictions; "
        "a model with error bars (train --all) or fires with true smoke (ensemble --truth) would "
        "add it."
    )


def _predicted(model: Answer) -> str:
    attrs = model.attrs
    ignitions = int(attrs["model_ignitions"] or 0)
    origin = f" of {counted(ignitions, 'ignition')}" if ignitions else ""
    text = (
        "The smoke is predicted by a surrogate, a fast model that has learned from "
        f"{counted(int(attrs['model_snapshots']), 'snapshot')} of fires{origin} with known smoke "
        "how fires make smoke. "
    )
    if "model_verdict" in attrs:
        word = "" if attrs["model_beats_baselines"] else "Warning: "
        text += (
            f"{word}Tested on fires that it had not learned from, {attrs['model_verdict']} (IoU is "
            "the overlap of predicted and true smoke, 1 at best; the error is 0 at best). "
        )
    bars = str(attrs["model_error_bars"])
    if bars == NO_ERROR_BARS:
        return (
            f"{text}It has no error bars for single fires; train --all with at least five "
            "ignitions makes them."
        )
    return f"{text}For single fires, measured on fires that it had not seen: {bars}."


def _beyond(maps: Answer) -> tuple[str, str]:
    count, total = int(maps.attrs.get("snapshots_beyond_training", 0)), int(maps.attrs["snapshots"])
    if not count:
        return "Fires unlike the training fires.", "None: all lie within what the model has seen."
    text = str(maps.attrs.get("extrapolation", f"{count} of {total} snapshots do"))
    return "Fires unlike the training fires.", f"Predictions are less certain there: {text}."


def _energy(energy: Answer) -> list[tuple[str, str]]:
    whole, lost, texts = tables.whole_of(energy), "Lost energy.", []
    if MODEL in energy.attrs and whole["lost_mwh_lower_surrogate"] is None:
        texts.append((lost, "The error of the predicted smoke is not part of the interval."))
    if whole["lost_mwh_lower_sampling"] is None:
        texts.append((lost, "One ignition: the interval is for these fires, not for others."))
    depth = whole["largest_optical_depth"]
    if depth > KNOWN_DEPTH:
        text = (
            f"The optical depth (how much light the smoke takes away) reaches {number(depth)}; "
            f"beyond {KNOWN_DEPTH:g} no measurements confirm the models of the sky."
        )
        texts.append(("Very thick smoke.", text))
    text = "Clouds and soot on the panels are left out: compare losses, not yields."
    return [*texts, (lost, text)]


def assumptions(answers: Answers) -> list[tuple[str, str]]:
    """What the numbers rest on, as pairs of a name and a value."""
    rows = [*_smoke(answers), *_model(answers), *_sources(answers)]
    energy = answers.get(ENERGY)
    if energy is not None:
        rows += _optics(energy)
    files = sorted({item.path.name for item in answers.found.values()})
    return [*rows, ("files of this page", ", ".join(files)), ("plumecast", __version__)]


def _smoke(answers: Answers) -> Iterator[tuple[str, str]]:
    main = answers.get(MAPS) or answers.get(PLACES) or answers.get(DIFFERENCES)
    if main is None:
        return
    name = str(main.attrs["quantity"])
    meaning = QUANTITIES[name].long_name if name in QUANTITIES else name
    yield "smoke", f"{meaning} ({tables.units_of(main)})"
    fires, snapshots = main.attrs.get("fires"), main.attrs.get("snapshots")
    if fires and snapshots:
        which = "the last of each fire" if fires == snapshots else "all of each fire"
        yield "moments of the fires", f"{counted(int(snapshots), 'snapshot')}, {which}"


def _model(answers: Answers) -> Iterator[tuple[str, str]]:
    item = _with_model(answers)
    if item is None:
        yield "model", "none: the smoke is that of the fires themselves"
        return
    attrs = item.attrs
    yield "model", f"{attrs['model_preset']}, plumecast {attrs['model_version']}, {attrs[MODEL]}"
    yield "trained on", f"{attrs['model_trained_on']}, version {attrs['model_data_version']}"
    if "model_seed" in attrs:
        yield "seed of the training fires", f"{attrs['model_seed']}"
    if "model_checkpoint_interval_h" in attrs:
        yield "time between checkpoints", f"{attrs['model_checkpoint_interval_h']:g} h"
    yield "weather that the model uses", str(attrs["model_weather"])


def _sources(answers: Answers) -> Iterator[tuple[str, str]]:
    titles = {
        MAPS: "fires of the maps", PLACES: "fires at the places", ENERGY: "fires of the plants",
        DIFFERENCES: "scenarios", DIFFERENCE_MAPS: "scenarios",
    }  # fmt: skip
    shown: dict[str, list[str]] = {}
    for kind, title in titles.items():
        item = answers.get(kind)
        if item is not None and "fires_from" in item.attrs:
            titles_of = shown.setdefault(str(item.attrs["fires_from"]), [])
            titles_of += [] if title in titles_of else [title]
    for origin, names in shown.items():
        yield ", ".join(names), origin


def _optics(energy: Answer) -> Iterator[tuple[str, str]]:
    attrs = energy.attrs
    (low, high), (dark, bright) = attrs["optics_mee_range"], attrs["optics_ssa_range"]
    yield (
        "light that a gram of smoke takes away (mass extinction efficiency)",
        f"{attrs['optics_mee']:g} m² g⁻¹, range {low:g} to {high:g}",
    )
    yield (
        "share of that light that is scattered (single-scattering albedo)",
        f"{attrs['optics_ssa']:g}, range {dark:g} to {bright:g}",
    )
    yield "growth of smoke in humid air", f"factor {attrs['optics_growth']:g}"
    yield "depth of the air column", f"{attrs['column_depth_m'] / 1000.0:.3g} km"
    yield "ignition of all fires", str(attrs["ignition_time"])
    yield (
        "panels",
        f"{attrs['panels_dc_ac_ratio']:g} W of modules per W of inverters, air of "
        f"{attrs['panels_air_temperature']:g} °C",
    )
    if "optics_seed" in attrs:
        yield "seed of the optical properties", f"{attrs['optics_seed']}"
