// Fires of the store: observed beside predicted, and the footprint's scores over the threshold.

import { ask, askField, tell } from "../api.js";
import { state, watch } from "../state.js";
import { drawChart } from "../view/chart.js";
import { differenceScale, drawLegend, smokeScale } from "../view/scale.js";
import { drawSmall } from "../view/small.js";
import { describe, elapsed, fillSelect, find, short, unitText } from "../view/text.js";

const WAIT = 150; // ms without a further move of the threshold before scores are asked for
const SAYS = { observed: "Observed smoke", predicted: "Predicted smoke", difference: "Predicted minus observed smoke" };

let fires = null;
let onMaps = null;
let timer = 0;
const overtaken = { maps: 0, scores: 0 };

/** `drawn({fire, k, fields, scales})` is called with every drawing; with it, the first is at once. */
export function startStore(server, drawn = null) {
  onMaps = drawn;
  find("store-empty").hidden = server.store !== null;
  find("store-body").hidden = server.store === null;
  if (server.store === null) return;
  find("store-fire").addEventListener("change", () => showFire(server));
  find("store-hour").addEventListener("input", () => showMaps(server));
  find("threshold").addEventListener("input", () => {
    sayThreshold(server);
    clearTimeout(timer);
    timer = setTimeout(() => showScores(server), WAIT);
  });
  watch((names) => (names.has("model") || (names.has("panel") && state.panel === "store")) && open(server));
  sayThreshold(server);
  open(server);
}

async function open(server) {
  if (state.panel !== "store" && !onMaps) return;
  const trouble = find("store-trouble");
  try {
    if (!fires) {
      fires = (await ask("api/store/fires")).fires;
      fillSelect(find("store-fire"), fires.map((one) => [one.id, one.held_out ? `${one.id} (held out)` : one.id]));
    }
    tell(trouble, null);
    await Promise.all([showFire(server), showScores(server)]);
  } catch (error) {
    tell(trouble, error);
  }
}

async function showFire(server) {
  const one = fires.find(({ id }) => String(id) === find("store-fire").value);
  const slider = find("store-hour");
  slider.max = one.hours.length - 1;
  slider.value = slider.max;
  await showMaps(server);
}

async function showMaps(server) {
  const mine = ++overtaken.maps;
  const one = fires.find(({ id }) => String(id) === find("store-fire").value);
  const k = Number(find("store-hour").value);
  const at = elapsed(one.hours[k]);
  find("store-hour-text").textContent = at;
  find("store-hour").setAttribute("aria-valuetext", at);
  try {
    const layers = Object.keys(SAYS);
    const model = state.model ? { model: state.model } : {};
    const fields = await Promise.all(
      layers.map((layer) => askField(`api/store/fires/${encodeURIComponent(one.id)}/${k}?${new URLSearchParams({ layer, ...model })}`)),
    );
    if (mine !== overtaken.maps) return;
    const scales = [smokeScale(server.scale), smokeScale(server.scale), differenceScale(fields[2].values)];
    const titles = ["Observed", "Predicted", "Difference"];
    await drawSmall(find("store-maps"), server.grid, layers.map((layer, n) => (
      { title: titles[n], field: fields[n], scale: scales[n], says: `${SAYS[layer]} after ${at}` })));
    drawLegend(find("store-legend"), scales[0], { title: "Smoke", units: fields[0].units });
    drawLegend(find("store-difference"), scales[2], { title: "Predicted − observed", units: fields[2].units });
    const named = (list) => Object.fromEntries(layers.map((layer, n) => [layer, list[n]]));
    onMaps?.({ fire: one, k, fields: named(fields), scales: named(scales) });
  } catch (error) {
    if (mine === overtaken.maps) tell(find("store-trouble"), error);
  }
}

/** The slider is logarithmic, as smoke is: low at 0, high at 100. */
function threshold({ scale }) {
  return scale.low * (scale.high / scale.low) ** (Number(find("threshold").value) / 100);
}

function sayThreshold(server) {
  const words = `${short(threshold(server))} ${unitText(server.scale.units ?? "ug m-3")}`;
  find("threshold-text").textContent = words;
  find("threshold").setAttribute("aria-valuetext", words);
}

async function showScores(server) {
  const mine = ++overtaken.scores;
  if (!find("roc").hasChildNodes()) find("roc").textContent = "The scores of the held-out fires are being computed …";
  try {
    const query = new URLSearchParams({ model: state.model, threshold: threshold(server) });
    const scores = await ask(`api/store/scores?${query}`);
    if (mine !== overtaken.scores) return;
    tell(find("store-trouble"), null);
    describe(find("store-scores"), [
      ["IoU", short(scores.iou), "score-iou"],
      ["Hit rate", short(scores.hit_rate), "score-hits"],
      ["False alarms", short(scores.false_alarm_ratio), "score-alarms"],
    ]);
    if (!scores.roc.length) {
      find("roc").textContent = "No ROC: no cell, or every cell, has more smoke than the threshold.";
      return;
    }
    drawChart(find("roc"), {
      lines: [{ label: "ROC of the held-out fires", x: scores.roc.map(([x]) => x), y: scores.roc.map(([, y]) => y) }],
      xLabel: "False positive rate", yLabel: "Hit rate", square: true,
      summary: `ROC curve of the held-out fires; at the threshold the hit rate is ${short(scores.hit_rate)}`,
    });
  } catch (error) {
    if (mine === overtaken.scores) tell(find("store-trouble"), error);
  }
}
