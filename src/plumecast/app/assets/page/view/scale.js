// Colour scales: value → colour, and the legend that belongs to it.

import { showLegend } from "../../map/legend.js";
import { short } from "./text.js";

// Blue to white to orange: the two ends differ for every common form of colour blindness.
const DIVERGING = ["#0b3c7d", "#4a86c5", "#b5d2e8", "#f7f7f7", "#f7c79b", "#d9792b", "#7f3b08"];
const BURNING = ["#ffd27a", "#f28e2b", "#c1440e", "#5a1a06"];
const FOOTPRINT = ["#5b2a86", "#5b2a86"];

/** A scale is {low, high, kind: "log" | "linear", stops: [[r, g, b], …], hides: value → boolean}. */
export const smokeScale = ({ low, high, colours }) => ({
  low, high, kind: "log", stops: colours.map(rgb), hides: (value) => !(value >= low),
});

/** The server's scale is that of the time mean; the dose and the sum grow with the hours. */
export function scaleFor({ scale, hours, interval }, quantity) {
  const times = { dose: hours.at(-1), sum: hours.at(-1) / interval }[quantity] ?? 1;
  return { ...scale, low: scale.low * times, high: scale.high * times };
}
export const burningScale = (hours) => ({
  low: 0, high: hours, kind: "linear", stops: BURNING.map(rgb), hides: (value) => !(value > 0),
});
export const footprintScale = () => ({
  low: 0, high: 1, kind: "footprint", stops: FOOTPRINT.map(rgb), hides: (value) => !(value > 0),
});

/** Symmetric about zero, up to the 99th percentile of the absolute differences: one cell beside the
 * source would otherwise make the rest of the map white. Differences below 2 % are not drawn. */
export function differenceScale(values) {
  const sizes = Float32Array.from(values, Math.abs).filter((v) => v > 0).sort();
  const high = sizes.length ? sizes[Math.floor(0.99 * (sizes.length - 1))] : 1;
  return {
    low: -high, high, kind: "linear", stops: DIVERGING.map(rgb),
    hides: (value) => !(Math.abs(value) >= 0.02 * high),
  };
}

/** Position of a value on its scale, clipped to [0, 1]. */
export function position(scale, value) {
  const { low, high } = scale;
  const t = scale.kind === "log" ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
  return Math.min(1, Math.max(0, t));
}

export const colour = (scale, value) => along(scale, position(scale, value));

/** Colour at the share t of the way along a scale. */
function along(scale, t) {
  const at = t * (scale.stops.length - 1);
  const i = Math.min(scale.stops.length - 2, Math.floor(at));
  return scale.stops[i].map((part, c) => part + (at - i) * (scale.stops[i + 1][c] - part));
}

/** A field as a picture of nx × ny pixels, north up. */
export function picture(field, scale) {
  const canvas = document.createElement("canvas");
  canvas.width = field.nx;
  canvas.height = field.ny;
  const context = canvas.getContext("2d");
  const image = context.createImageData(field.nx, field.ny);
  for (let j = 0; j < field.ny; j++)
    for (let i = 0; i < field.nx; i++) {
      const value = field.values[j * field.nx + i];
      if (scale.hides(value)) continue;
      const at = 4 * ((field.ny - 1 - j) * field.nx + i);
      const [r, g, b] = colour(scale, value);
      image.data.set([r, g, b, 255], at);
    }
  context.putImageData(image, 0, 0);
  return canvas;
}

/** Draw the legend of `scale` into `host`: a bar, its ticks, and what is shown in which unit. */
export function drawLegend(host, scale, { title, units: unit }) {
  const units = unit === "1" ? "" : unit; // a share or a yes has none
  const layer = { meaning: title, units, kind: scale.kind === "footprint" ? "set" : "values" };
  const ticks = tickValues(scale).map((value) => ({ position: position(scale, value), text: short(value) }));
  showLegend(host, layer, { ticks, colours: levels(scale) });
}

/** (256, 4) bytes: the colours of 254 equal steps along the scale, from level 1 on. */
function levels(scale) {
  const bytes = new Uint8ClampedArray(4 * 256);
  for (let level = 1; level <= 254; level++)
    bytes.set([...along(scale, (level - 1) / 253), 255], 4 * level);
  return bytes;
}

function tickValues({ low, high, kind }) {
  if (kind !== "log") return [0, 1, 2, 3, 4].map((i) => low + (i * (high - low)) / 4);
  const tens = [];
  for (let p = Math.ceil(Math.log10(low) - 1e-9); 10 ** p <= high * (1 + 1e-9); p++) tens.push(10 ** p);
  return tens.length > 1 ? tens : [low, Math.sqrt(low * high), high];
}

function rgb(text) {
  if (Array.isArray(text)) return text;
  return [1, 3, 5].map((at) => Number.parseInt(text.slice(at, at + 2), 16));
}
