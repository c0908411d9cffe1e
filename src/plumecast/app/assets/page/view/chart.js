// A line chart as SVG: lines, points, bands; colours from the stylesheet.

import { element, shape, short } from "./text.js";

const WIDTH = 480;
const HEIGHT = 240;
const EDGE = { left: 56, right: 12, top: 12, bottom: 42 };

/**
 * `lines` are {label, x, y, lower?, upper?, points?: true}; `summary` is the sentence that a screen
 * reader says instead of the picture. `square`: both axes run from 0 to 1 with the diagonal.
 */
export function drawChart(host, { lines, xLabel, yLabel, summary, square = false }) {
  const svg = shape("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": summary });
  const x = axis(lines.flatMap((line) => line.x), square);
  const y = axis(lines.flatMap((line) => [...line.y, ...(line.upper ?? []), 0]), square);
  const toX = (value) => EDGE.left + ((value - x.low) / (x.high - x.low)) * (WIDTH - EDGE.left - EDGE.right);
  const toY = (value) => HEIGHT - EDGE.bottom - ((value - y.low) / (y.high - y.low)) * (HEIGHT - EDGE.top - EDGE.bottom);
  const path = (xs, ys) => xs.map((value, i) => `${toX(value).toFixed(1)},${toY(ys[i]).toFixed(1)}`);

  for (const value of y.ticks) {
    svg.append(shape("line", { class: "grid", x1: EDGE.left, x2: WIDTH - EDGE.right, y1: toY(value), y2: toY(value) }));
    svg.append(shape("text", { x: EDGE.left - 6, y: toY(value) + 4, "text-anchor": "end" }, short(value)));
  }
  for (const value of x.ticks) svg.append(shape("text", { x: toX(value), y: HEIGHT - EDGE.bottom + 16, "text-anchor": "middle" }, short(value)));
  svg.append(shape("text", { x: (WIDTH + EDGE.left) / 2, y: HEIGHT - 6, "text-anchor": "middle" }, xLabel));
  const middle = (HEIGHT - EDGE.bottom) / 2;
  svg.append(shape("text", { x: 12, y: middle, transform: `rotate(-90 12 ${middle})`, "text-anchor": "middle" }, yLabel));
  if (square) svg.append(shape("line", { class: "diagonal", x1: toX(0), y1: toY(0), x2: toX(1), y2: toY(1) }));

  lines.forEach((line, n) => {
    if (line.lower && line.upper) {
      const around = [...path(line.x, line.upper), ...path(line.x, line.lower).reverse()];
      svg.append(shape("polygon", { class: `band hue${n % 5}`, points: around.join(" ") }));
    }
    svg.append(shape("polyline", { class: `line hue${n % 5}`, points: path(line.x, line.y).join(" ") }));
    if (line.points) for (const at of path(line.x, line.y)) {
      const [cx, cy] = at.split(",");
      svg.append(shape("circle", { class: `dot hue${n % 5}`, cx, cy, r: 4 }));
    }
  });
  host.replaceChildren(svg, key(lines));
}

function key(lines) {
  const items = lines.map((line, n) =>
    element("li", {}, element("span", { class: `swatch hue${n % 5}` }), line.label),
  );
  return element("ul", { class: "key" }, ...items);
}

/** Range with round ends, and about four ticks in steps of 1, 2 or 5 times a power of ten. */
function axis(values, square) {
  const known = values.filter(Number.isFinite);
  let low = square ? 0 : Math.min(...known);
  let high = square ? 1 : Math.max(...known);
  if (!known.length) [low, high] = [0, 1];
  if (high <= low) high = low + 1;
  const raw = (high - low) / 4;
  const ten = 10 ** Math.floor(Math.log10(raw));
  const step = ten * [1, 2, 5, 10].find((times) => times * ten >= raw * 0.999);
  low = Math.floor(low / step + 1e-9) * step;
  high = Math.ceil(high / step - 1e-9) * step;
  const ticks = [];
  for (let i = 0; low + i * step <= high + step / 2; i++) ticks.push(low + i * step);
  return { low, high, ticks };
}
