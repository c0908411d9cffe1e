// The time series of one cell, with its error bar as a band. uPlot is loaded before as a global.

const COLOURS = matchMedia("(prefers-color-scheme: dark)").matches
  ? ["#56b4e9", "#e69f00"] : ["#0072b2", "#c24e00"];
const HEIGHT = 190;

/**
 * Draw series of one cell into an element.
 * `series` has entries {title, values}; `band` is {lower, upper} or null; `now` is the hour shown.
 */
export function drawChart(element, hours, series, { band = null, units = "", now = null } = {}) {
  element.replaceChildren();
  const ink = getComputedStyle(element).color;
  const axis = { stroke: ink, grid: { stroke: "rgba(128,128,128,.3)", width: 1 }, ticks: { show: false } };
  const options = {
    width: Math.max(element.clientWidth, 200),
    height: HEIGHT,
    cursor: { drag: { x: false, y: false } },
    legend: { show: false },
    scales: { x: { time: false }, y: { range: (u, low, high) => [Math.min(low, 0), high > 0 ? high * 1.05 : 1] } },
    axes: [
      { ...axis, label: "hours since ignition", labelSize: 18, size: 30 },
      { ...axis, label: units, labelSize: 18, size: 56 },
    ],
    series: [{}, ...series.map((line, number) => ({
      label: line.title, stroke: COLOURS[number % COLOURS.length], width: 2,
      dash: number % 2 ? [6, 4] : undefined, points: { size: 6 },
    }))],
    bands: [],
    hooks: { draw: now === null ? [] : [(plot) => markNow(plot, now, ink)] },
  };
  const data = [hours, ...series.map((line) => line.values)];
  if (band) {
    const first = options.series.length;
    for (const values of [band.upper, band.lower]) {
      options.series.push({ stroke: "rgba(128,128,128,.8)", width: 1, points: { show: false } });
      data.push(values);
    }
    options.bands = [{ series: [first, first + 1], fill: "rgba(128,128,128,.25)" }];
  }
  return new uPlot(options, data, element);
}

function markNow(plot, hour, ink) {
  const x = Math.round(plot.valToPos(hour, "x", true));
  const { top, height } = plot.bbox;
  plot.ctx.save();
  plot.ctx.strokeStyle = ink;
  plot.ctx.setLineDash([3, 3]);
  plot.ctx.beginPath();
  plot.ctx.moveTo(x, top);
  plot.ctx.lineTo(x, top + height);
  plot.ctx.stroke();
  plot.ctx.restore();
}

/** The key of a chart: the colour of each line, in words for those who cannot see it. */
export function showKey(element, series, band) {
  element.replaceChildren();
  series.forEach((line, number) => {
    const item = document.createElement("span");
    const mark = document.createElement("span");
    mark.className = "key-mark";
    mark.style.borderTopColor = COLOURS[number % COLOURS.length];
    mark.style.borderTopStyle = number % 2 ? "dashed" : "solid";
    item.append(mark, line.title);
    element.append(item);
  });
  if (band) {
    const item = document.createElement("span");
    const mark = document.createElement("span");
    mark.className = "key-mark key-band";
    item.append(mark, "error bar");
    element.append(item);
  }
}
