// Places: a list, the smoke at each with its interval, a time series of one.

import { ask, tell } from "../api.js";
import { fire, watchFire } from "../fire.js";
import { change, state, watch } from "../state.js";
import { drawChart } from "../view/chart.js";
import { element, elapsed, fillTable, find, short, unitText } from "../view/text.js";

let chosen = 0;
let turnOf = 0;

/** Add a place at a point of the map, named by its number. */
export function addPlace([x, y]) {
  const numbers = state.places.map(({ name }) => Number(/^Place (\d+)$/.exec(name)?.[1] ?? 0));
  const name = `Place ${1 + Math.max(0, ...numbers)}`;
  chosen = state.places.length;
  change({ places: [...state.places, { name, x: Math.round(x), y: Math.round(y) }], panel: "places" });
}

export function startPlaces() {
  find("csv-add").addEventListener("click", () => addTable(find("csv").value));
  find("csv-file").addEventListener("change", async (event) => {
    const [file] = event.target.files;
    if (file) await addTable(await file.text());
    event.target.value = "";
  });
  watch((names) => ["places", "panel", "quantity"].some((name) => names.has(name)) && show());
  watchFire((now, k) => k === null && show());
  show();
}

/** Tell the server the places of the page, so that its tables have them. */
export async function sendPlaces() {
  const quoted = (name) => `"${name.replaceAll('"', '""')}"`;
  const rows = state.places.map(({ name, x, y }) => `${quoted(name)},${x},${y}`);
  const csv = rows.length ? ["name,x,y", ...rows].join("\n") : "";
  await ask("api/places", { body: { csv } });
}

async function addTable(csv) {
  const trouble = find("csv-trouble");
  tell(trouble, null);
  try {
    const { places, notes } = await ask("api/places", { body: { csv } });
    const known = new Set(state.places.map(({ name }) => name));
    const added = places.filter(({ name }) => !known.has(name)).map(({ name, x, y }) => ({ name, x, y }));
    change({ places: [...state.places, ...added] });
    find("csv-note").textContent = [`${added.length} of ${places.length} places added.`, ...notes].join(" ");
    find("csv").value = "";
  } catch (error) {
    tell(trouble, error);
  }
}

async function show() {
  const { places } = state;
  find("places-empty").hidden = places.length > 0;
  if (state.panel !== "places") return;
  const mine = ++turnOf;
  chosen = Math.min(chosen, Math.max(0, places.length - 1));
  try {
    const series = await Promise.all(places.map(smokeAt));
    if (mine !== turnOf) return;
    tell(find("places-trouble"), null);
    table(places, series);
    chart(places[chosen], series[chosen]);
  } catch (error) {
    if (mine === turnOf) tell(find("places-trouble"), error);
  }
}

/** Time series at a place, or null while there is no finished fire. */
async function smokeAt({ x, y }) {
  if (!fire?.id || fire.running) return null;
  const query = new URLSearchParams({ x, y, ...(state.quantity ? { quantity: state.quantity } : {}) });
  const series = await ask(`api/fires/${fire.id}/point?${query}`);
  return { ...series, units: unitText(series.units) };
}

function table(places, series) {
  const units = series.find(Boolean)?.units;
  const rows = places.map((place, n) => {
    const all = series[n];
    const end = all ? all.mean.length - 1 : 0;
    const pickButton = element("button", { type: "button", class: "plain", "aria-pressed": n === chosen }, place.name);
    pickButton.addEventListener("click", () => {
      chosen = n;
      show();
    });
    const drop = element("button", { type: "button", "aria-label": `Remove ${place.name}` }, "Remove");
    drop.addEventListener("click", () => change({ places: places.filter((_, m) => m !== n) }));
    const interval = all?.lower ? `${short(all.lower[end])} to ${short(all.upper[end])}` : "–";
    const where = `${short(place.x / 1000)}, ${short(place.y / 1000)}`;
    return [pickButton, where, all ? all.mean[end] : "–", interval, drop];
  });
  const last = series.find(Boolean)?.hours.at(-1);
  fillTable(find("places-table"), {
    caption: last === undefined ? "Places (light a fire to see their smoke)" : `Smoke after ${elapsed(last)} (${units})`,
    columns: ["Place", "x, y (km)", "Smoke", "Interval", ""],
    rows,
  });
}

function chart(place, series) {
  const host = find("places-chart");
  const note = find("places-note");
  if (!series) {
    host.replaceChildren();
    note.textContent = "";
    return;
  }
  const line = { label: place.name, x: series.hours, y: series.mean, points: true };
  if (series.lower) Object.assign(line, { lower: series.lower, upper: series.upper });
  const peak = Math.max(...series.mean);
  drawChart(host, {
    lines: [line], xLabel: "Time since ignition (h)", yLabel: `Smoke (${series.units})`,
    summary: `Smoke at ${place.name}: at most ${short(peak)} ${series.units}`,
  });
  note.textContent = series.lower
    ? `The band holds the smoke in ${Math.round(100 * series.coverage)} % of cases.`
    : "This model has no interval.";
}
