// The present fire: ask for it, follow its frames, keep their fields.

import { ask, askField, follow } from "./api.js";
import { state } from "./state.js";

const WAIT = 200; // ms without a further change before a fire is run again

const listeners = new Set();
let timer = 0;
let stop = null;

/** {id, hours, frames: [{hour, burned_area, seconds}], fields, running, error, firstSmoke} or null. */
export let fire = null;

/** Call `listener(fire, k)` when frame k has arrived (k null: the fire began, ended or failed). */
export function watchFire(listener) {
  listeners.add(listener);
}

/** Run the fire of the state soon; a later call replaces an earlier one. */
export function rerun({ wait = WAIT } = {}) {
  clearTimeout(timer);
  timer = setTimeout(run, wait);
}

/** Stop asking and forget the fire. */
export function putOut() {
  clearTimeout(timer);
  stop?.abort();
  fire = null;
  say(null);
}

/** The field of a layer at checkpoint k; asked for once. */
export function fieldOf(burning, k, { layer, quantity }) {
  const query = new URLSearchParams({ layer, ...(quantity ? { quantity } : {}) });
  const path = `api/fires/${burning.id}/frames/${k}?${query}`;
  if (!burning.fields.has(path)) {
    const asked = askField(path);
    asked.catch(() => burning.fields.delete(path));
    burning.fields.set(path, asked);
  }
  return burning.fields.get(path);
}

/** The request that the state stands for. */
function question() {
  const weather =
    state.kind === "drought"
      ? { drought: state.drought }
      : { surface: state.surface, aloft: state.aloft, hour: state.start, ...(state.drought ? { drought: state.drought } : {}) };
  return { ignite: state.ignite, weather, model: state.model };
}

async function run() {
  stop?.abort();
  stop = new AbortController();
  const { signal } = stop;
  const began = performance.now();
  try {
    const made = await ask("api/fires", { body: question(), signal });
    fire = { id: made.id, hours: made.hours, weather: weatherText(), model: state.model, frames: [], fields: new Map(), running: true, error: null, firstSmoke: null };
    const mine = fire;
    say(null);
    const frame = (data) => {
      mine.firstSmoke ??= (performance.now() - began) / 1000;
      mine.frames[data.k] = data;
      say(data.k);
    };
    await follow(`api/fires/${mine.id}/events`, { handlers: { frame }, last: "done", signal });
    mine.running = false;
    say(null);
  } catch (error) {
    if (signal.aborted) return;
    fire = { id: null, hours: [], frames: [], fields: new Map(), running: false, error, firstSmoke: null };
    say(null);
  }
}

/** The weather and the ignition of the state in words. */
function weatherText() {
  const km = (metres) => Math.round(metres / 100) / 10;
  const lit = `lit at ${state.ignite.map(([x, y]) => `x ${km(x)} km, y ${km(y)} km`).join(" to ")}`;
  if (state.kind === "drought") return `drought ${state.drought}, ${lit}`;
  const wind = ({ from, speed }) => `${Math.round(from)}° ${speed} m/s`;
  return `wind ${wind(state.surface)}, aloft ${wind(state.aloft)}, ${state.start}:00, drought ${state.drought}, ${lit}`;
}

const say = (k) => listeners.forEach((listener) => listener(fire, k));
