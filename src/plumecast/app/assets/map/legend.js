// The legend: the colour bar of a scale with its numbers, as part of the page or of a picture.

import { numberText } from "./data.js";

/** The words of a legend: what is shown, and its unit. */
export function legendTitle(layer) {
  return layer.units ? `${layer.meaning} (${layer.units})` : layer.meaning;
}

/** How exact the values are, in words; nothing where they are not rounded to levels. */
export function resolutionText(scale, layer) {
  if (layer.kind === "set" || scale.resolution === undefined) return "";
  const unit = layer.units ? ` ${layer.units}` : "";
  if (scale.kind === "linear") return `values to ±${numberText(scale.resolution)}${unit}`;
  return `values to ±${numberText(100 * scale.resolution)} %`;
}

/** Fill an element with the legend of a layer, in the colours that its opacity gives. */
export function showLegend(element, layer, scale, opacity = 1) {
  const title = document.createElement("p");
  title.className = "legend-title";
  title.textContent = legendTitle(layer);
  const bar = document.createElement("canvas");
  bar.className = "legend-bar";
  bar.setAttribute("role", "img");
  const ends = [scale.ticks[0], scale.ticks[scale.ticks.length - 1]];
  bar.setAttribute("aria-label", `colours from ${ends[0].text} to ${ends[1].text} ${layer.units}`);
  paintBar(bar, scale);
  bar.style.opacity = String(opacity);
  const ticks = document.createElement("div");
  ticks.className = "legend-ticks";
  ticks.setAttribute("aria-hidden", "true");
  for (const tick of shownTicks(scale, layer)) {
    const mark = document.createElement("span");
    mark.textContent = tick.text;
    mark.style.left = `${100 * tick.position}%`;
    ticks.append(mark);
  }
  const exact = document.createElement("p");
  exact.className = "legend-resolution";
  exact.textContent = resolutionText(scale, layer);
  element.replaceChildren(title, bar, ticks, exact);
}

/** The numbers of a bar; a set of cells has none. */
export function shownTicks(scale, layer) {
  return layer.kind === "set" ? [{ position: 0.5, text: "yes" }] : scale.ticks;
}

function paintBar(canvas, scale) {
  canvas.width = 254;
  canvas.height = 1;
  const context = canvas.getContext("2d");
  const picture = context.createImageData(254, 1);
  picture.data.set(scale.colours.subarray(4, 4 * 255));
  context.putImageData(picture, 0, 0);
}

/** Draw the legend of a layer into a picture, within a box of the canvas. */
export function drawLegend(context, layer, scale, box, opacity = 1) {
  const bar = document.createElement("canvas");
  paintBar(bar, scale);
  context.fillStyle = "#1f2933";
  context.font = "14px system-ui, sans-serif";
  context.textAlign = "left";
  context.fillText(legendTitle(layer), box.left, box.top + 12, box.width);
  context.imageSmoothingEnabled = false;
  context.globalAlpha = opacity;
  context.drawImage(bar, box.left, box.top + 20, box.width, 14);
  context.globalAlpha = 1;
  context.strokeStyle = "#6b7680";
  context.strokeRect(box.left + 0.5, box.top + 20.5, box.width - 1, 13);
  context.font = "12px system-ui, sans-serif";
  context.textAlign = "center";
  for (const tick of shownTicks(scale, layer)) {
    context.fillText(tick.text, box.left + tick.position * box.width, box.top + 48);
  }
}
