// The weather of the fire: a drought scenario, or two winds and an hour of day.

import { change, state, turn, watch } from "../state.js";
import { windRose } from "../view/rose.js";
import { fillSelect, find } from "../view/text.js";

const HEIGHTS = [{ name: "aloft", title: "Wind aloft" }, { name: "surface", title: "Wind at the surface" }];
const SCENARIO = "Dryness of the fuels and the weather of that scenario in training.";
const RIM = 30; // m/s at the rim of the rose; faster winds are typed

export function startWeather(server) {
  const most = server.limits.wind_speed;
  const rose = windRose(find("rose"), { heights: HEIGHTS, most: RIM, onTurn: setWind });
  for (const { name } of HEIGHTS) {
    find(`${name}-speed`).max = most;
    find(`${name}-height`).textContent = ` (${heightText(server.heights[name])})`;
    for (const part of ["from", "speed"])
      find(`${name}-${part}`).addEventListener("change", (event) => {
        const value = Number.parseFloat(event.target.value);
        if (Number.isFinite(value)) setWind(name, { ...state[name], [part]: part === "from" ? turn(value) : Math.min(most, Math.max(0, value)) });
        else show();
      });
  }
  find("start").addEventListener("input", (event) => change({ start: Number(event.target.value) }));
  find("drought").addEventListener("change", (event) => change({ drought: event.target.value }));
  for (const radio of document.querySelectorAll("input[name=weather]"))
    radio.addEventListener("change", () => change({ kind: radio.value }));
  find("weather-kind").hidden = !(server.own_weather && server.droughts.length);
  find("drought-label").hidden = !server.droughts.length;
  fillSelect(find("drought"), server.droughts.map((name) => [name, name]), state.drought);

  const show = () => {
    for (const { name } of HEIGHTS) {
      rose(name, state[name]);
      find(`${name}-from`).value = Math.round(state[name].from);
      find(`${name}-speed`).value = state[name].speed;
    }
    find("start").value = state.start;
    const clock = `${String(state.start).padStart(2, "0")}:00`;
    find("start-text").textContent = clock;
    find("start").setAttribute("aria-valuetext", clock);
    find("drought").value = state.drought;
    document.querySelector(`input[name=weather][value=${state.kind}]`).checked = true;
    find("wind").hidden = state.kind !== "wind";
    find("drought-help").textContent = state.kind === "wind" ? "How dry the fuels are." : SCENARIO;
  };
  watch(show);
  show();
}

const heightText = (metres) => (metres < 1000 ? `${metres} m` : `${metres / 1000} km`);

/** One wind moves; the other turns with it where the user wants that. */
function setWind(name, wind) {
  const other = name === "surface" ? "aloft" : "surface";
  const by = wind.from - state[name].from;
  const turned = find("together").checked && by !== 0;
  change({
    [name]: wind,
    ...(turned ? { [other]: { ...state[other], from: turn(state[other].from + by) } } : {}),
  });
}
