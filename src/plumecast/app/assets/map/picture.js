// The map as a picture with its title, time, scale bar and legend, to save.

import { drawLegend } from "./legend.js";
import { BORDERS, boundsOf, gridStep } from "./ground.js";

const WIDTH = 1200;
const PAD = 24;
const HEAD = 56;
const FOOT = 86;

/** A canvas with what the map shows now; `shown` comes from the viewer. */
export function drawPicture(shown) {
  const { grid, field, relief, rings, layer, scale, title, time, opacity, borders, places } = shown;
  const [[south, west], [north, east]] = boundsOf(grid);
  const size = (WIDTH - 2 * PAD) / (east - west);
  const tall = (north - south) * size;
  const canvas = document.createElement("canvas");
  canvas.width = WIDTH;
  canvas.height = Math.round(HEAD + tall + FOOT);
  const context = canvas.getContext("2d");
  context.fillStyle = "#ffffff";
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.fillStyle = "#1f2933";
  context.font = "bold 18px system-ui, sans-serif";
  context.fillText(title, PAD, 24, WIDTH - 2 * PAD);
  context.font = "14px system-ui, sans-serif";
  context.fillText(`${layer.title}${time ? `, ${time}` : ""}`, PAD, 45, WIDTH - 2 * PAD);
  context.imageSmoothingEnabled = false;
  if (relief) context.drawImage(relief, PAD, HEAD, WIDTH - 2 * PAD, tall);
  context.globalAlpha = opacity;
  context.drawImage(field, PAD, HEAD, WIDTH - 2 * PAD, tall);
  context.globalAlpha = 1;
  context.strokeStyle = "#6b7680";
  context.strokeRect(PAD, HEAD, WIDTH - 2 * PAD, tall);
  const at = (x, y) => [PAD + (x - west) * size, HEAD + (north - y) * size];
  drawBorders(context, borders, at, [PAD, HEAD, WIDTH - 2 * PAD, tall]);
  for (const [colour, width] of [["#ffffff", 5], ["#d7301f", 2.5]]) {
    context.strokeStyle = colour;
    context.lineWidth = width;
    for (const ring of rings) drawRing(context, ring, grid, size, HEAD + tall);
  }
  context.lineWidth = 1;
  drawPlaces(context, places, at);
  const foot = HEAD + tall + 18;
  drawLegend(context, layer, scale, { left: PAD, top: foot, width: 0.6 * WIDTH }, opacity);
  drawScaleBar(context, gridStep(grid), size, WIDTH - PAD, foot + 20);
  return canvas;
}

function drawRing(context, ring, grid, size, floor) {
  context.beginPath();
  for (let k = 0; k < ring.length; k += 2) {
    const x = PAD + ring[k] * grid.dx * size;
    const y = floor - ring[k + 1] * grid.dy * size;
    if (k === 0) context.moveTo(x, y);
    else context.lineTo(x, y);
  }
  context.closePath();
  context.stroke();
}

function drawBorders(context, borders, at, frame) {
  context.save();
  context.beginPath();
  context.rect(...frame);
  context.clip();
  for (const [kind, lines] of Object.entries(borders)) {
    context.strokeStyle = BORDERS[kind].color;
    context.lineWidth = BORDERS[kind].weight;
    for (const line of lines) {
      context.beginPath();
      for (let k = 0; k < line.length; k += 2) context.lineTo(...at(line[k], line[k + 1]));
      context.stroke();
    }
  }
  context.restore();
}

function drawPlaces(context, places, at) {
  context.font = "13px system-ui, sans-serif";
  context.textAlign = "left";
  for (const place of places) {
    const [x, y] = at(place.x, place.y);
    context.beginPath();
    context.arc(x, y, 4, 0, 2 * Math.PI);
    context.fillStyle = "#1f2933";
    context.fill();
    context.strokeStyle = "#ffffff";
    context.lineWidth = 3;
    context.strokeText(place.name, x + 8, y + 4);
    context.fillText(place.name, x + 8, y + 4);
  }
  context.lineWidth = 1;
}

function drawScaleBar(context, kilometres, size, right, top) {
  const length = 1000 * kilometres * size;
  context.fillStyle = "#1f2933";
  context.fillRect(right - length, top, length, 4);
  context.font = "12px system-ui, sans-serif";
  context.textAlign = "center";
  context.fillText(`${kilometres} km`, right - length / 2, top + 20);
}
