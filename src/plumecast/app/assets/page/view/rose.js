// The wind rose: two arrows that one turns by pointer or keyboard.

import { compass, shape } from "./text.js";
import { turn } from "../state.js";

const RADIUS = 100;
const SIZE = 256; // of the viewBox
const TURN = 5; // degrees per arrow key
const FASTER = 0.5; // m/s per arrow key

export const windText = ({ from, speed }) => `from ${Math.round(from)}°, ${compass(from)}, ${speed} m/s`;

/**
 * A rose in `host`. `heights` are [{name, title}]; `most` is the speed at the rim (m/s).
 * `onTurn(name, {from, speed})` follows every move. Returns show(name, {from, speed}).
 */
export function windRose(host, { heights, most, onTurn }) {
  const svg = shape("svg", { viewBox: "-128 -128 256 256", role: "group", "aria-label": "Wind rose" });
  for (const part of [1 / 3, 2 / 3, 1]) {
    svg.append(shape("circle", { class: "ring", r: part * RADIUS }));
    svg.append(shape("text", { class: "ring-text", x: 3, y: -part * RADIUS + 11 }, `${Math.round(part * most)}`));
  }
  svg.append(shape("text", { class: "ring-text", x: 26, y: -RADIUS + 11 }, "m/s"));
  for (const [name, at] of [["N", 0], ["E", 90], ["S", 180], ["W", 270]]) {
    const [x, y] = polar(at, RADIUS + 18);
    svg.append(shape("text", { class: "compass", x, y: y + 5, "text-anchor": "middle" }, name));
  }
  const arrows = Object.fromEntries(
    heights.map(({ name, title }) => [name, arrow(svg, { name, title, most, onTurn })]),
  );
  host.replaceChildren(svg);
  return (name, wind) => arrows[name](wind);
}

/** One arrow: its grip lies where the wind comes from; the arrow points where it blows to. */
function arrow(svg, { name, title, most, onTurn }) {
  const group = shape("g", { class: `arrow ${name}` });
  const shaft = shape("line", { class: "shaft" });
  const tip = shape("polygon", { class: "tip", points: "0,16 -7,1 7,1" });
  const grip = shape("circle", {
    class: "grip", r: 10, tabindex: "0", role: "slider", "aria-label": `${title}, direction`,
    "aria-valuemin": "0", "aria-valuemax": "359", "aria-orientation": "horizontal",
  });
  group.append(shaft, tip, grip);
  svg.append(group);
  let wind = { from: 0, speed: 0 };
  const move = (changed) => onTurn(name, { ...wind, ...changed });

  grip.addEventListener("keydown", (event) => {
    const size = event.shiftKey ? 3 : 1;
    const moves = {
      ArrowRight: { from: turn(wind.from + TURN * size) },
      ArrowLeft: { from: turn(wind.from - TURN * size) },
      ArrowUp: { speed: Math.min(most, wind.speed + FASTER * size) },
      ArrowDown: { speed: Math.max(0, wind.speed - FASTER * size) },
      Home: { from: 0 },
    };
    if (!moves[event.key]) return;
    event.preventDefault();
    move(moves[event.key]);
  });
  grip.addEventListener("pointerdown", (event) => {
    grip.setPointerCapture(event.pointerId);
    grip.focus();
    event.preventDefault();
  });
  grip.addEventListener("pointermove", (event) => {
    if (!grip.hasPointerCapture(event.pointerId)) return;
    const box = svg.getBoundingClientRect();
    const [x, y] = [event.clientX - box.x - box.width / 2, event.clientY - box.y - box.height / 2];
    const reach = (Math.hypot(x, y) / box.width) * SIZE;
    move({
      from: turn(Math.round((Math.atan2(x, -y) * 180) / Math.PI)),
      speed: Math.min(most, Math.round((reach / RADIUS) * most * 2) / 2),
    });
  });

  return (now) => {
    wind = now;
    // An arrow of no wind keeps a little length, so that its grip can be taken.
    const length = Math.min(1, Math.max(0.14, wind.speed / most)) * RADIUS;
    const [x, y] = polar(wind.from, length);
    for (const [key, value] of Object.entries({ x1: x, y1: y, x2: -0.35 * x, y2: -0.35 * y })) shaft.setAttribute(key, value);
    tip.setAttribute("transform", `translate(${-0.35 * x} ${-0.35 * y}) rotate(${wind.from})`);
    grip.setAttribute("cx", x);
    grip.setAttribute("cy", y);
    grip.setAttribute("aria-valuenow", Math.round(wind.from));
    grip.setAttribute("aria-valuetext", windText(wind));
  };
}

const polar = (degrees, length) => {
  const angle = (degrees * Math.PI) / 180;
  return [Math.sin(angle) * length, -Math.cos(angle) * length];
};
