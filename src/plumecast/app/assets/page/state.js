// The whole state of the page, and its form in the URL fragment.
//
// #ignite=9000,12000;9500,12500&wind=270,8,280,12,14&drought=high&model=ID&hour=3&layer=smoke&place=9000,1000,School

const START = {
  ignite: [],
  kind: "wind",
  surface: { speed: 8, from: 270 },
  aloft: { speed: 20, from: 270 },
  start: 12,
  drought: "",
  model: "",
  hour: null,
  layer: "smoke",
  quantity: "",
  places: [],
  panel: "weather",
};

const listeners = new Set();
export const state = structuredClone(START);

/** Merge `changes` into the state, write the fragment, tell the listeners the changed names. */
export function change(changes) {
  const names = Object.keys(changes).filter(
    (name) => JSON.stringify(state[name]) !== JSON.stringify(changes[name]),
  );
  Object.assign(state, changes);
  history.replaceState(null, "", `#${toFragment(state)}`);
  if (names.length) listeners.forEach((listener) => listener(new Set(names)));
}

/** Call `listener(names)` after every change. */
export function watch(listener) {
  listeners.add(listener);
}

export function toFragment(now) {
  const parts = new URLSearchParams();
  if (now.ignite.length) parts.set("ignite", now.ignite.map(pair).join(";"));
  if (now.kind === "wind") parts.set("wind", [now.surface.from, now.surface.speed, now.aloft.from, now.aloft.speed, now.start].join(","));
  if (now.hour !== null) parts.set("hour", now.hour);
  for (const name of ["drought", "model", "layer", "quantity", "panel"]) if (now[name]) parts.set(name, now[name]);
  for (const place of now.places) parts.append("place", `${pair([place.x, place.y])},${place.name}`);
  return parts.toString().replaceAll("%2C", ",").replaceAll("%3B", ";");
}

/** State of a fragment. Parts that cannot be read keep their defaults: links are typed by people. */
export function fromFragment(fragment) {
  const parts = new URLSearchParams(fragment.replace(/^#/, ""));
  const now = structuredClone(START);
  now.ignite = (parts.get("ignite") ?? "").split(";").map(numbers).filter((p) => p.length === 2);
  const wind = numbers(parts.get("wind") ?? "");
  if (wind.length === 5) {
    now.surface = { from: turn(wind[0]), speed: Math.max(0, wind[1]) };
    now.aloft = { from: turn(wind[2]), speed: Math.max(0, wind[3]) };
    now.start = Math.min(23, Math.max(0, Math.round(wind[4])));
  }
  if (parts.has("drought") && !parts.has("wind")) now.kind = "drought";
  const hour = Number.parseInt(parts.get("hour") ?? "", 10);
  if (hour >= 0) now.hour = hour;
  for (const name of ["drought", "model", "layer", "quantity", "panel"]) now[name] = parts.get(name) || START[name];
  now.places = parts.getAll("place").map(readPlace).filter((place) => place !== null);
  return now;
}

/** Any angle → [0, 360). */
export const turn = (degrees) => ((degrees % 360) + 360) % 360;

const pair = (point) => point.map((value) => Math.round(value)).join(",");

function numbers(text) {
  const values = text.split(",").map(Number.parseFloat);
  return text && values.every(Number.isFinite) ? values : [];
}

function readPlace(text) {
  const [x, y, ...name] = text.split(",");
  const place = { name: name.join(",").slice(0, 80), x: Number.parseFloat(x), y: Number.parseFloat(y) };
  return place.name && Number.isFinite(place.x) && Number.isFinite(place.y) ? place : null;
}
