// Numbers of a field: largest value, middle, direction, value at a point.

import { extent } from "./map.js";
import { compass, short } from "./text.js";
import { turn } from "../state.js";

export const largest = (field) => field.values.reduce((most, value) => Math.max(most, value), 0);

/** Centre of mass Σ x·g / Σ g in metres, or null without smoke. */
export function centre(field, grid) {
  const { left, bottom, width, height } = extent(grid);
  let [sum, x, y] = [0, 0, 0];
  field.values.forEach((value, n) => {
    if (!(value > 0)) return;
    sum += value;
    x += value * (left + ((n % field.nx) + 0.5) * (width / field.nx));
    y += value * (bottom + (Math.floor(n / field.nx) + 0.5) * (height / field.ny));
  });
  return sum > 0 ? [x / sum, y / sum] : null;
}

/** "9.3 km to the east (92°)": from one point to another, degrees clockwise from north. */
export function direction([ax, ay], [bx, by]) {
  const degrees = turn((Math.atan2(bx - ax, by - ay) * 180) / Math.PI);
  return `${short(Math.hypot(bx - ax, by - ay) / 1000)} km to the ${compass(degrees)} (${Math.round(degrees) % 360}°)`;
}

export function valueAt(field, grid, [x, y]) {
  const { left, bottom, width, height } = extent(grid);
  const i = Math.floor(((x - left) / width) * field.nx);
  const j = Math.floor(((y - bottom) / height) * field.ny);
  return field.values[j * field.nx + i];
}
