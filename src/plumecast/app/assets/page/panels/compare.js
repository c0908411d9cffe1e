// Compare: the kept fire A beside the present fire B, their difference and a table.

import { ask, askField, tell } from "../api.js";
import { fieldOf, fire, watchFire } from "../fire.js";
import { state, watch } from "../state.js";
import { differenceScale, drawLegend, scaleFor, smokeScale } from "../view/scale.js";
import { drawSmall } from "../view/small.js";
import { elapsed, fillTable, find, KM2_PER_ACRE, unitText } from "../view/text.js";
import { sendPlaces } from "./places.js";

let kept = null;
let turnOf = 0;

export function startCompare(server) {
  find("keep").addEventListener("click", () => {
    kept = fire;
    show(server);
  });
  find("forget").addEventListener("click", () => {
    kept = null;
    show(server);
  });
  watch((names) => ["panel", "hour", "quantity"].some((name) => names.has(name)) && show(server));
  watchFire((now, k) => k === null && show(server));
  show(server);
}

async function show(server) {
  const ready = Boolean(fire?.id) && !fire.running;
  find("keep").disabled = !ready;
  find("forget").disabled = kept === null;
  find("compare-empty").hidden = kept !== null;
  tell(find("compare-trouble"), null);
  const both = kept !== null && ready && kept.id !== fire.id;
  const nameOf = (model) => server.models.find(({ id }) => id === model)?.name ?? "that is gone";
  const said = ({ weather, model }) => `${weather}, model ${nameOf(model)}`;
  const words = kept === null ? "" : both ? `A: ${said(kept)}. B: ${said(fire)}.` : `A: ${said(kept)}. Now change something: the next fire is B.`;
  find("compare-which").textContent = words;
  if (!both) {
    for (const id of ["compare-maps", "compare-legend"]) find(id).replaceChildren();
    find("compare-table").hidden = true;
    find("compare-notes").textContent = "";
    return;
  }
  if (state.panel === "compare") await compare(server, kept, fire);
}

async function compare(server, a, b) {
  const mine = ++turnOf;
  const k = Math.min(state.hour ?? Infinity, a.hours.length - 1, b.hours.length - 1);
  const layer = { layer: "smoke", quantity: state.quantity };
  const query = new URLSearchParams({ quantity: state.quantity });
  try {
    await sendPlaces();
    const [answer, smokeA, smokeB] = await Promise.all([
      ask(`api/compare?${query}`, { body: { a: a.id, b: b.id, k } }),
      fieldOf(a, k, layer),
      fieldOf(b, k, layer),
    ]);
    const change = await askField(`${answer.difference}${k}?${query}`);
    if (mine !== turnOf) return;
    const scale = smokeScale(scaleFor(server, state.quantity));
    const diverging = differenceScale(change.values);
    const at = elapsed(b.hours[k]);
    await drawSmall(find("compare-maps"), server.grid, [
      { title: "A", field: smokeA, scale, says: `Smoke of fire A after ${at}` },
      { title: "B", field: smokeB, scale, says: `Smoke of fire B after ${at}` },
      { title: "B − A", field: change, scale: diverging, says: `Difference of the smoke after ${at}` },
    ]);
    drawLegend(find("compare-legend"), diverging, { title: `B − A after ${at}`, units: change.units });
    table(answer);
    find("compare-notes").textContent = answer.notes.join(" ");
  } catch (error) {
    if (mine === turnOf) tell(find("compare-trouble"), error);
  }
}

/** The table of `plumecast compare`: one row per place and one for the grid; and burned areas. */
function table({ hour, quantity, units, burned_area: burned, table: rows }) {
  const unit = unitText(units);
  const numbers = [
    ["Burned area (km²)", ...[burned.a, burned.b, burned.b - burned.a].map((acres) => KM2_PER_ACRE * acres)],
    ...rows.map((row) => [row.place, row.reference_mean, row.scenario_mean, row.difference]),
  ];
  fillTable(find("compare-table"), {
    caption: `B − A after ${elapsed(hour)}; smoke is the ${quantity} (${unit})`,
    columns: ["", "A", "B", "Difference"],
    rows: numbers,
  });
}
