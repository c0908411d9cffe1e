// The map of a source: fires to choose from, layers, times, values of a cell and their series.

import { frameOf, hoursText, inflate, kilometreText, valueText, MISSING } from "./data.js";
import { FieldLayer } from "./field_layer.js";
import { showLegend } from "./legend.js";
import { TimeSlider } from "./time_slider.js";
import { drawChart, showKey } from "./chart.js";
import { borderLines, boundsOf, kilometreGrid, Perimeter, placeMarks } from "./ground.js";
import { drawPicture } from "./picture.js";

const SERIES = ["smoke", "smoke_mean", "predicted"]; // drawn together
const OVER_RELIEF = 0.85; // opacity of smoke where there is a hillshade below

export class Viewer {
  constructor(root, content) {
    this.find = (name) => root.querySelector(`[data-part="${name}"]`);
    this.content = content;
    this.grid = content.grid;
    this.cell = null;
    this.opacity = content.relief ? OVER_RELIEF : 1;
    this.levels = {};
    for (const scale of Object.values(content.scales)) {
      scale.colours = Uint8Array.from(scale.colours.flat());
    }
    this.drawMap();
    this.fillChoices();
    const parts = { slider: this.find("slider"), button: this.find("play"), label: this.find("time") };
    this.times = new TimeSlider(parts, (time) => this.showTime(time));
  }

  async start() {
    await this.chooseScene(0);
  }

  drawMap() {
    const bounds = boundsOf(this.grid);
    this.map = L.map(this.find("map"), {
      crs: L.CRS.Simple, minZoom: -14, maxZoom: 2, zoomSnap: 0.25, attributionControl: false,
    });
    this.map.fitBounds(bounds, { padding: [18, 18], animate: false });
    this.map.setMaxBounds(L.latLngBounds(bounds).pad(0.6));
    for (const [name, order] of [["ground", 210], ["field", 300], ["lines", 420], ["places", 450]]) {
      this.map.createPane(name).style.zIndex = order;
    }
    if (this.content.relief) {
      L.imageOverlay(this.content.relief, bounds, { pane: "ground", alt: "" }).addTo(this.map);
      this.relief = new Image();
      this.relief.src = this.content.relief;
    }
    kilometreGrid(this.grid).addTo(this.map);
    this.field = new FieldLayer(this.grid, { pane: "field", opacity: this.opacity }).addTo(this.map);
    borderLines(this.content.borders).addTo(this.map);
    this.perimeter = new Perimeter(this.grid, "lines");
    this.perimeter.group.addTo(this.map);
    placeMarks(this.content.places, "places", (place) => this.selectPlace(place)).addTo(this.map);
    L.control.scale({ imperial: false, position: "bottomright" }).addTo(this.map);
    const frame = { fill: false, interactive: false, pane: "places" };
    this.marks = [["#ffffff", 5], ["#000000", 2]].map(([color, weight]) =>
      L.rectangle(bounds, { ...frame, color, weight }));
    this.map.on("click", (event) => this.selectPoint(event.latlng));
    this.find("map").addEventListener("keydown", (event) => {
      if (event.key === "Enter" && event.target === this.find("map")) this.selectPoint(this.map.getCenter());
    });
  }

  fillChoices() {
    const scenes = this.find("scene");
    this.content.scenes.forEach((scene, number) => scenes.append(new Option(scene.name, number)));
    this.find("scene-row").hidden = this.content.scenes.length < 2;
    scenes.addEventListener("change", () => this.chooseScene(Number(scenes.value)));
    const layers = this.find("layer");
    for (const layer of this.content.layers) layers.append(new Option(layer.title, layer.name));
    this.layer = this.content.layers[0];
    layers.addEventListener("change", () => {
      this.layer = this.content.layers.find((layer) => layer.name === layers.value);
      this.showTime(this.times.time);
    });
    const opacity = this.find("opacity");
    opacity.value = String(100 * this.opacity);
    opacity.addEventListener("input", () => {
      this.opacity = Number(opacity.value) / 100;
      this.field.setOpacity(this.opacity);
      showLegend(this.find("legend"), this.layer, this.scale(), this.opacity);
    });
    for (const [name, step] of [["north", [1, 0]], ["south", [-1, 0]], ["west", [0, -1]], ["east", [0, 1]]]) {
      this.find(name).addEventListener("click", () => this.moveCell(...step));
    }
    this.find("save").addEventListener("click", () => this.savePicture());
    const places = this.find("places");
    for (const place of this.content.places) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = place.name;
      button.addEventListener("click", () => this.selectPlace(place));
      places.append(button);
    }
    this.find("places-row").hidden = this.content.places.length === 0;
  }

  async chooseScene(number) {
    const scene = this.content.scenes[number];
    const names = this.content.layers.map((layer) => layer.name);
    const fields = await Promise.all(names.map((name) => inflate(scene.fields[name])));
    this.scene = scene;
    this.levels = Object.fromEntries(names.map((name, k) => [name, fields[k]]));
    this.find("time-row").hidden = scene.hours === null;
    this.times.setHours(scene.hours ?? [0]);
  }

  scale(layer = this.layer) {
    return this.content.scales[layer.scale];
  }

  showTime(time) {
    const layer = this.layer;
    this.field.setLevels(frameOf(this.levels[layer.name], time, this.grid), this.scale().colours);
    this.perimeter.show(this.scene.perimeters ? this.scene.perimeters[time] : []);
    showLegend(this.find("legend"), layer, this.scale(), this.opacity);
    this.showCell();
  }

  selectPoint(point) {
    const column = Math.floor((point.lng - this.grid.left) / this.grid.dx);
    const row = Math.floor((point.lat - this.grid.bottom) / this.grid.dy);
    if (row < 0 || column < 0 || row >= this.grid.ny || column >= this.grid.nx) return;
    this.selectCell(row, column, "");
  }

  selectPlace(place) {
    this.selectCell(place.row, place.column, place.name);
  }

  moveCell(north, east) {
    const { row, column } = this.cell;
    const limit = (value, most) => Math.max(0, Math.min(most - 1, value));
    this.selectCell(limit(row + north, this.grid.ny), limit(column + east, this.grid.nx), "");
  }

  selectCell(row, column, name) {
    this.cell = { row, column, name };
    const { left, bottom, dx, dy } = this.grid;
    const corners = [
      [bottom + row * dy, left + column * dx],
      [bottom + (row + 1) * dy, left + (column + 1) * dx],
    ];
    for (const mark of this.marks) mark.setBounds(corners).addTo(this.map);
    this.showCell();
  }

  showCell() {
    this.find("cell").hidden = this.cell === null;
    this.find("hint").hidden = this.cell !== null;
    if (this.cell === null) return;
    const { row, column, name } = this.cell;
    const x = (this.grid.left + (column + 0.5) * this.grid.dx) / 1000;
    const y = (this.grid.bottom + (row + 0.5) * this.grid.dy) / 1000;
    const where = `x ${kilometreText(x)}, y ${kilometreText(y)}`;
    this.find("where").textContent = name ? `${name} (${where})` : where;
    const body = this.find("values");
    body.replaceChildren();
    for (const layer of this.content.layers) {
      const line = document.createElement("tr");
      const head = document.createElement("th");
      head.scope = "row";
      head.textContent = layer.title;
      const cell = document.createElement("td");
      cell.dataset.layer = layer.name;
      cell.textContent = valueText(this.levelAt(layer, this.times.time), this.scale(layer), layer);
      line.append(head, cell);
      body.append(line);
    }
    this.showSeries();
  }

  levelAt(layer, time) {
    const cells = this.grid.nx * this.grid.ny;
    return this.levels[layer.name][time * cells + this.cell.row * this.grid.nx + this.cell.column];
  }

  seriesOf(layer) {
    const scale = this.scale(layer);
    return this.scene.hours.map((hour, time) => {
      const level = this.levelAt(layer, time);
      return level === MISSING ? null : scale.values[level];
    });
  }

  showSeries() {
    const shown = this.scene.hours !== null && this.scene.hours.length > 1;
    this.find("series").hidden = !shown;
    if (!shown) return;
    const together = SERIES.includes(this.layer.name);
    const lines = this.content.layers.filter((layer) =>
      together ? SERIES.includes(layer.name) : layer === this.layer);
    const ends = ["lower", "upper"].map((name) => this.content.layers.find((layer) => layer.name === name));
    const band = together && ends[0] && ends[1]
      ? { lower: this.seriesOf(ends[0]), upper: this.seriesOf(ends[1]) } : null;
    const series = lines.map((layer) => ({ title: layer.title, values: this.seriesOf(layer) }));
    drawChart(this.find("chart"), this.scene.hours, series, {
      band, units: this.layer.units, now: this.scene.hours[this.times.time],
    });
    showKey(this.find("key"), series, band);
  }

  picture() {
    const time = this.times.time;
    return drawPicture({
      grid: this.grid, field: this.field.canvas(), relief: this.relief, layer: this.layer,
      scale: this.scale(), opacity: this.opacity, borders: this.content.borders, places: this.content.places,
      rings: this.scene.perimeters ? this.scene.perimeters[time] : [],
      title: [this.content.title, this.scene.name].filter(Boolean).join(": "),
      time: this.scene.hours ? `${hoursText(this.scene.hours[time])} since ignition` : "",
    });
  }

  savePicture() {
    const link = document.createElement("a");
    link.download = "map.png";
    link.href = this.picture().toDataURL("image/png");
    link.click();
  }
}
