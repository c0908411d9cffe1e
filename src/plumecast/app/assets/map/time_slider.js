// The time slider with its play button.

import { hoursText } from "./data.js";

const STEP_MS = 700;

/** A slider over the times of a scene; `changed` is called with the number of the time. */
export class TimeSlider {
  constructor(elements, changed) {
    Object.assign(this, elements); // slider, button, label
    this.changed = changed;
    this.timer = null;
    this.slider.addEventListener("input", () => this.show(Number(this.slider.value)));
    this.button.addEventListener("click", () => (this.timer === null ? this.play() : this.pause()));
  }

  /** Use other times; the last is shown unless another one is asked for. */
  setHours(hours, time = hours.length - 1) {
    this.pause();
    this.hours = hours;
    this.slider.max = String(hours.length - 1);
    this.slider.disabled = hours.length < 2;
    this.button.disabled = hours.length < 2;
    this.show(Math.min(time, hours.length - 1));
  }

  show(time) {
    this.time = time;
    this.slider.value = String(time);
    const text = `${hoursText(this.hours[time])} since ignition`;
    this.slider.setAttribute("aria-valuetext", text);
    this.label.textContent = text;
    this.changed(time);
  }

  play() {
    if (this.time === this.hours.length - 1) this.show(0);
    this.button.textContent = "Pause";
    this.timer = setInterval(() => {
      if (this.time + 1 < this.hours.length) this.show(this.time + 1);
      if (this.time + 1 >= this.hours.length) this.pause();
    }, STEP_MS);
  }

  pause() {
    clearInterval(this.timer);
    this.timer = null;
    this.button.textContent = "Play";
  }
}
