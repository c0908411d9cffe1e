// The page: reads the server's state, joins map, time, layers and panels.

import { ask, tell } from "./api.js";
import { fire, fieldOf, putOut, rerun, watchFire } from "./fire.js";
import { change, fromFragment, state, watch } from "./state.js";
import { TimeSlider } from "../map/time_slider.js";
import { createMap, perimeterEdges } from "./view/map.js";
import { burningScale, drawLegend, footprintScale, picture, scaleFor, smokeScale } from "./view/scale.js";
import { useLand } from "./view/small.js";
import { describe, fillSelect, find, KM2_PER_ACRE, short } from "./view/text.js";
import { centre, direction, largest, valueAt } from "./view/measure.js";
import { startCompare } from "./panels/compare.js";
import { startDownload } from "./panels/download.js";
import { addPlace, startPlaces } from "./panels/places.js";
import { startStore } from "./panels/store.js";
import { drawStored, OF_A_FIRE, readStored, showStored, showStoredTime, startStored, STORED } from "./panels/stored.js";
import { startTabs } from "./panels/tabs.js";
import { startTrain } from "./panels/train.js";
import { startWeather } from "./panels/weather.js";

const LAYERS = [["smoke", "Smoke"], ["footprint", "Footprint"], ["fire", "Time since ignition"]];
const BANDS = [
  ["lower", "Smoke, lower end of the interval"], ["upper", "Smoke, upper end of the interval"],
  ["certain", "Footprint, certain"], ["possible", "Footprint, possible"],
];
const QUANTITIES = { mean: "Time mean", dose: "Dose", sum: "Sum of checkpoints" };
const QUANTITY = "mean"; // what people read
const SETS = ["footprint", "certain", "possible"];
const STRANGE = "This fire is unlike those of the training: trust its smoke less.";
const RUNS_AGAIN = ["ignite", "kind", "surface", "aloft", "start", "drought", "model"];

const server = { grid: null, scale: null };
let map = null;
let time = null;
let follows = true; // show every frame as it arrives, until the user chooses a time
let read = null; // the point whose value is said under the map, if it is one
let turnOf = 0; // drawings that were overtaken by later ones are dropped

/** The checkpoint on the map. */
const shown = () => time.time ?? 0;

async function start() {
  startTheme();
  try {
    Object.assign(server, await ask("api/state"));
  } catch (error) {
    tell(find("trouble"), error);
    return;
  }
  restore();
  map = createMap(find("map"), {
    grid: server.grid, land: find("land"), sky: find("sky"), onPick: pick, onCross: sayGround,
    canDrag: () => tool() === "ignite",
  });
  const image = new Image();
  image.addEventListener("load", () => map.drawLand(image));
  if (server.can_ignite) {
    image.src = "api/landscape.png";
    useLand();
  }
  new ResizeObserver(() => {
    map.drawLand(image.complete && image.naturalWidth ? image : null);
    map.show();
  }).observe(find("map"));
  startChoices();
  startTime();
  startTabs(server.can_ignite ? [] : OF_A_FIRE);
  startWeather(server);
  startPlaces(server);
  startCompare(server);
  startStore(server, server.can_ignite ? null : (found) => showStored(map, time, found));
  startTrain(server, startChoices);
  startDownload(shown);
  watch(stateChanged);
  watchFire(fireChanged);
  window.addEventListener("hashchange", () => {
    restore();
    startChoices();
    if (!state.ignite.length) putOut();
    else if (time.hours && state.hour !== null) time.show(Math.min(state.hour, time.hours.length - 1));
  });
  map.show({ ignite: state.ignite, places: state.places });
  if (!server.can_ignite) startStored(server);
  else if (state.ignite.length) rerun({ wait: 0 });
}

/** State from the fragment, with what this server does not have replaced by its defaults. */
function restore() {
  const wanted = fromFragment(location.hash);
  if (!server.models.some((model) => model.id === wanted.model)) wanted.model = server.models.at(-1)?.id ?? "";
  if (!Object.hasOwn(server.quantities, wanted.quantity)) wanted.quantity = QUANTITY;
  if (!server.droughts.includes(wanted.drought)) wanted.drought = middle(server.droughts) ?? "";
  if (!server.can_ignite) {
    wanted.ignite = [];
    if (OF_A_FIRE.includes(wanted.panel)) wanted.panel = "store";
  }
  if (!server.own_weather) wanted.kind = "drought";
  else if (!server.droughts.length) wanted.kind = "wind";
  follows = wanted.hour === null;
  change(wanted);
}

const middle = (list) => list[Math.floor(list.length / 2)];

function startChoices() {
  const model = server.models.find(({ id }) => id === state.model);
  const ofFire = model?.calibrated ? [...LAYERS, ...BANDS] : LAYERS;
  const layers = server.can_ignite ? ofFire : STORED;
  if (!layers.some(([name]) => name === state.layer)) change({ layer: layers[0][0] });
  fillSelect(find("model"), server.models.map(({ id, name }) => [id, name]), state.model);
  fillSelect(find("layer"), layers, state.layer);
  const quantities = Object.entries(server.quantities).map(([name, about]) => [name, QUANTITIES[name] ?? about.long_name]);
  fillSelect(find("quantity"), quantities, state.quantity);
  find("quantity").parentElement.hidden = !server.can_ignite || quantities.length < 2;
  for (const name of ["model", "layer", "quantity"]) find(name).onchange = (event) => change({ [name]: event.target.value });
}

const opacity = () => Number(find("opacity").value) / 100;
const tool = () => document.querySelector("input[name=tool]:checked").value;

function pick(points) {
  find("empty").hidden = true;
  if (tool() === "place") addPlace(points[0]);
  else if (tool() === "read") readSmoke(points[0]);
  else {
    follows = true;
    change({ ignite: points.map((point) => point.map(Math.round)) });
  }
}

function stateChanged(names) {
  map.show({ ignite: state.ignite, places: state.places });
  if (RUNS_AGAIN.some((name) => names.has(name)) && state.ignite.length) {
    find("status").textContent = "The fire is running …";
    rerun({ wait: names.has("ignite") ? 0 : undefined });
  }
  if (names.has("model")) startChoices();
  if (["layer", "quantity"].some((name) => names.has(name))) draw();
}

function fireChanged(now, k) {
  tell(find("trouble"), now?.error);
  find("empty").hidden = Boolean(now) || state.ignite.length > 0;
  for (const id of ["again", "put-out"]) find(id).disabled = !state.ignite.length;
  if (!now || now.error) {
    clearMap();
    return;
  }
  if (JSON.stringify(time.hours) !== JSON.stringify(now.hours)) time.setHours(now.hours, state.hour ?? 0);
  find("hour").disabled = find("play").disabled = now.hours.length < 2;
  if (k !== null && (follows || k === time.time)) time.show(k);
  if (!now.running) {
    // A fire whose weather changes keeps its time: the plume bends in place.
    follows = false;
    change({ hour: time.time });
  }
  const words = now.running
    ? `Smoke at ${now.frames.filter(Boolean).length} of ${now.hours.length} times …`
    : `Smoke at ${now.hours.length} times. First smoke after ${now.firstSmoke.toFixed(2)} s.`;
  const strange = now.frames.some((frame) => frame?.extrapolates);
  find("status").textContent = strange ? `${words} ${STRANGE}` : words;
}

function clearMap() {
  turnOf += 1;
  map.show({ picture: null, edges: [], ignite: state.ignite });
  find("status").textContent = "";
  find("numbers").replaceChildren();
  find("legend").replaceChildren();
  read = null;
  find("under").textContent = "";
  time.pause();
  find("hour-text").textContent = "–";
  find("hour").disabled = find("play").disabled = true;
}

/** Draw the fire at the chosen time: smoke, perimeter, legend and numbers. */
async function draw() {
  if (!server.can_ignite) {
    drawStored(map);
    readAgain();
    return;
  }
  const k = shown();
  if (!fire?.frames[k]) return;
  const mine = ++turnOf;
  const burning = fire;
  const { layer, quantity } = state;
  try {
    const [field, smoke, flames] = await Promise.all([
      fieldOf(burning, k, { layer, quantity }),
      fieldOf(burning, k, { layer: "smoke", quantity }),
      fieldOf(burning, k, { layer: "fire" }),
    ]);
    if (mine !== turnOf) return;
    const scale = scaleOf(layer, burning);
    map.show({
      picture: picture(field, scale), edges: perimeterEdges(flames, server.grid),
      opacity: opacity(), ignite: state.ignite,
    });
    drawLegend(find("legend"), scale, { title: titleOf(layer), units: field.units });
    sayNumbers(burning.frames[k], smoke);
    find("numbers").dataset.time = k; // which time the picture and the numbers are of
    readAgain();
  } catch (error) {
    if (mine === turnOf) tell(find("trouble"), error);
  }
}

function scaleOf(layer, burning) {
  if (layer === "fire") return burningScale(burning.hours.at(-1));
  return SETS.includes(layer) ? footprintScale() : smokeScale(scaleFor(server, state.quantity));
}

const titleOf = (layer) => [...LAYERS, ...BANDS].find(([name]) => name === layer)[1];

function sayNumbers(frame, smoke) {
  const { grid } = server;
  const scale = scaleFor(server, state.quantity);
  const cell = (grid.dx * grid.dy) / 1e6;
  const middle = centre(smoke, grid);
  const start = centreOf(state.ignite);
  const seen = smoke.values.reduce((count, value) => count + (value >= scale.low), 0);
  describe(find("numbers"), [
    ["Burned area", `${short(KM2_PER_ACRE * frame.burned_area)} km²`, "number-burned"],
    ["Largest smoke", `${short(largest(smoke))} ${smoke.units}`, "number-largest"],
    [`Smoke above ${short(scale.low)} ${smoke.units}`, `${short(seen * cell)} km²`, "number-area"],
    ["Middle of the smoke", middle ? direction(start, middle) : "no smoke", "number-plume"],
  ]);
}

const centreOf = (points) => [0, 1].map((axis) => points.reduce((sum, p) => sum + p[axis], 0) / points.length);

async function sayGround(point) {
  read = null;
  const where = `x ${short(point[0] / 1000)} km, y ${short(point[1] / 1000)} km`;
  const under = find("under");
  under.textContent = where;
  if (!server.can_ignite) return;
  try {
    const ground = await ask(`api/landscape?x=${point[0]}&y=${point[1]}`);
    const words = [where, `${short(ground.elevation)} m`, ground.fuel, ground.burnable ? "" : "cannot burn"];
    if (under.textContent === where) under.textContent = words.filter(Boolean).join(", ");
  } catch (error) {
    tell(under, error);
  }
}

/** Say the value at a point; it is read again when the picture changes (`readAgain`). */
async function readSmoke(point) {
  read = point;
  if (!server.can_ignite) {
    find("under").textContent = readStored(server.grid, point);
    return;
  }
  if (!fire?.frames[shown()]) {
    find("under").textContent = "There is no smoke to read yet: light a fire first.";
    return;
  }
  const field = await fieldOf(fire, shown(), state);
  if (read !== point) return;
  const value = valueAt(field, server.grid, point);
  const said = SETS.includes(state.layer) ? (value > 0 ? "yes" : "no") : `${short(value)} ${field.units}`;
  find("under").textContent =
    `${titleOf(state.layer)} at x ${short(point[0] / 1000)} km, y ${short(point[1] / 1000)} km: ${said}`;
}

function readAgain() {
  if (read) readSmoke(read);
}

function startTime() {
  time = new TimeSlider({ slider: find("hour"), button: find("play"), label: find("hour-text") }, (k) => {
    if (!server.can_ignite) {
      showStoredTime(k);
      readAgain();
      return;
    }
    if (!follows) change({ hour: k });
    draw();
  });
  for (const [id, event] of [["hour", "pointerdown"], ["hour", "keydown"], ["play", "click"]])
    find(id).addEventListener(event, () => (follows = false), { capture: true });
  find("opacity").addEventListener("input", () => map.show({ opacity: opacity() }));
  find("again").addEventListener("click", () => rerun({ wait: 0 }));
  find("put-out").addEventListener("click", () => {
    change({ ignite: [], hour: null });
    putOut();
  });
}

/** Light or dark: what the user chose, else what the system says. */
function startTheme() {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const show = () => {
    const dark = localStorage.getItem("theme") ? localStorage.getItem("theme") === "dark" : system.matches;
    root.dataset.theme = dark ? "dark" : "light";
    find("theme").textContent = dark ? "Light colours" : "Dark colours";
  };
  find("theme").addEventListener("click", () => {
    localStorage.setItem("theme", root.dataset.theme === "dark" ? "light" : "dark");
    show();
  });
  system.addEventListener("change", show);
  find("skip").addEventListener("click", (event) => {
    event.preventDefault();
    find("map").focus();
  });
  show();
}

start();
