// The large map of a server that cannot light fires: the fire that is chosen in the panel of the store.

import { state } from "../state.js";
import { drawLegend, picture } from "../view/scale.js";
import { valueAt } from "../view/measure.js";
import { elapsed, find, short } from "../view/text.js";

export const STORED = [
  ["predicted", "Predicted smoke"], ["observed", "Observed smoke"], ["difference", "Predicted − observed"],
];

/** Panels that need a fire of the page. */
export const OF_A_FIRE = ["weather", "places", "compare"];

let shown = null; // {fire, k, fields, scales}, both by layer

const titleOf = (layer) => STORED.find(([name]) => name === layer)[1];

/** Show what the panel shows, at the same time. */
export function showStored(map, time, found) {
  shown = found;
  const { fire, k } = found;
  if (JSON.stringify(time.hours) !== JSON.stringify(fire.hours)) time.setHours(fire.hours, k);
  else if (time.time !== k) time.show(k);
  drawStored(map);
}

/** Draw the chosen layer, its legend and what it is. */
export function drawStored(map) {
  if (!shown) return;
  const { fire, k, fields, scales } = shown;
  const { layer } = state;
  map.show({ picture: picture(fields[layer], scales[layer]) });
  drawLegend(find("legend"), scales[layer], { title: titleOf(layer), units: fields[layer].units });
  find("status").textContent = `${titleOf(layer)} of fire ${fire.id} after ${elapsed(fire.hours[k])}.`;
}

/** The time slider of the map moves that of the panel, which asks for the maps. */
export function showStoredTime(k) {
  const slider = find("store-hour");
  if (Number(slider.value) === k) return;
  slider.value = k;
  slider.dispatchEvent(new Event("input"));
}

/** The value at a point, in words. */
export function readStored(grid, point) {
  if (!shown) return "The fires of the store are not read yet.";
  const field = shown.fields[state.layer];
  return `${titleOf(state.layer)} at x ${short(point[0] / 1000)} km, y ${short(point[1] / 1000)} km: `
    + `${short(valueAt(field, grid, point))} ${field.units}`;
}

/** Only what is possible without a fire of the page can be chosen; the reason is said. */
export function startStored(server) {
  for (const radio of document.querySelectorAll("input[name=tool]")) {
    radio.disabled = radio.value !== "read";
    radio.checked = radio.value === "read";
  }
  find("why-not").textContent = `No fire can be lit here: ${server.why_not}.`;
  find("why-not").hidden = false;
  find("download-empty").textContent = "Files of these fires: plumecast predict, plumecast map.";
  find("empty").hidden = server.store !== null;
  find("empty").textContent = "There is nothing to show: start the server with --data STORE.";
}
