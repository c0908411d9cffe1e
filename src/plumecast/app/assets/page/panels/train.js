// Train: choose a recipe and a number of ignitions, follow the job, grow the learning curve.

import { ask, follow, tell } from "../api.js";
import { change, state, watch } from "../state.js";
import { drawChart } from "../view/chart.js";
import { fillSelect, fillTable, find, short } from "../view/text.js";

let job = null;
const results = [];

/** `onModel()` is called when the server has a new model. */
export function startTrain(server, onModel) {
  find("train-empty").hidden = server.store !== null;
  find("train-form").hidden = server.store === null;
  if (server.store === null) return;
  const recipes = [
    ...server.presets.map((name) => [`preset:${name}`, `preset ${name}`]),
    ...server.families.map((name) => [`family:${name}`, `family ${name}`]),
  ];
  fillSelect(find("recipe"), recipes, "preset:recommended");
  const { train: most, fewest } = server.store;
  Object.assign(find("ignitions"), { min: fewest, max: most, value: Math.max(fewest, Math.round(most / 2)) });
  find("held-out").textContent = `${fewest} to ${most}; ${server.store.held_out} others are held out to score.`;
  find("train-form").addEventListener("submit", (event) => {
    event.preventDefault();
    train(server, onModel);
  });
  find("cancel").addEventListener("click", cancel);
  watch((names) => names.has("panel") && state.panel === "train" && showCurve());
  if (state.panel === "train") showCurve();
}

async function train(server, onModel) {
  const [kind, name] = find("recipe").value.split(":");
  const ignitions = Number(find("ignitions").value);
  const stop = new AbortController();
  tell(find("train-trouble"), null);
  busy(true);
  find("train-status").textContent = `Training ${name} on ${ignitions} ignitions …`;
  try {
    const { id } = await ask("api/jobs", { body: { kind: "train", [kind]: name, ignitions } });
    job = { id, stop };
    const progress = ({ step, seconds }) => {
      find("train-status").textContent = `Training ${name}: ${step} (${short(seconds)} s)`;
    };
    let result = null;
    await follow(`api/jobs/${id}/events`, {
      handlers: { progress, result: (data) => (result = data) }, last: "result", signal: stop.signal,
    });
    await finished(server, { name, ignitions, ...result }, onModel);
  } catch (error) {
    find("train-status").textContent = error?.name === "AbortError" ? "Cancelled." : "";
    tell(find("train-trouble"), error);
  } finally {
    job = null;
    busy(false);
  }
}

async function finished(server, result, onModel) {
  results.unshift(result);
  server.models = (await ask("api/state")).models;
  find("train-status").textContent = `Trained in ${short(result.seconds)} s. The map now uses this model.`;
  showTable();
  onModel();
  change({ model: result.model });
  await showCurve();
}

async function cancel() {
  if (!job) return;
  const { id, stop } = job;
  stop.abort();
  try {
    await ask(`api/jobs/${id}`, { method: "DELETE" });
  } catch (error) {
    tell(find("train-trouble"), error);
  }
}

function busy(yes) {
  find("train").disabled = yes;
  find("cancel").disabled = !yes;
  find("progress-label").classList.toggle("hidden", !yes);
}

const SCORES = { deployable_iou: "IoU", auc: "AUC", relative_error: "Relative error" };

/** Scores of every training of this page, then the baselines of the latest. */
function showTable() {
  const [latest] = results;
  const row = (title, ignitions, seconds, scores) =>
    [title, ignitions, seconds, ...Object.keys(SCORES).map((name) => scores?.[name] ?? null)];
  const baselines = Object.entries(latest.baselines ?? {});
  fillTable(find("train-table"), {
    caption: "Scores of held-out fires",
    columns: ["Model", "Ignitions", "Seconds", ...Object.values(SCORES)],
    rows: [
      ...results.map((one) => row(one.name, one.ignitions, one.seconds, one.scores)),
      ...baselines.map(([name, scores]) => row(name.replaceAll(/[_-]/g, " "), latest.ignitions, "–", scores)),
    ],
  });
}

async function showCurve() {
  const answer = await ask("api/curve").catch((error) => tell(find("train-trouble"), error));
  const points = answer?.points ?? [];
  if (!points.length) {
    find("curve").textContent = "No training yet. Each training adds a point.";
    return;
  }
  const presets = [...new Set(points.map(({ preset }) => preset))];
  const lines = presets.map((preset) => {
    const own = points.filter((one) => one.preset === preset).sort((a, b) => a.ignitions - b.ignitions);
    return { label: preset, x: own.map((one) => one.ignitions), y: own.map((one) => one.iou), points: true };
  });
  const best = points.reduce((a, b) => (b.iou > a.iou ? b : a));
  drawChart(find("curve"), {
    lines, xLabel: "Training ignitions", yLabel: "IoU of held-out fires",
    summary: `Learning curve of ${points.length} trainings; the best IoU is ${short(best.iou)} with ${best.ignitions} ignitions`,
  });
}
