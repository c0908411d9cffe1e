// What lies below and above the smoke: hillshade, kilometre grid, borders, perimeter, places.

export const BORDERS = {
  county: { color: "#8a939b", weight: 0.7 },
  state: { color: "#4c5660", weight: 1.2, dashArray: "6 3" },
  country: { color: "#1f2933", weight: 1.6 },
};
const FIRE = "#d7301f";
const STEPS_KM = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];

/** Corners of the grid, as Leaflet has them: [y, x] in metres. */
export function boundsOf(grid) {
  return [
    [grid.bottom, grid.left],
    [grid.bottom + grid.ny * grid.dy, grid.left + grid.nx * grid.dx],
  ];
}

/** Step of the kilometre grid: four to ten lines across the longer side. */
export function gridStep(grid) {
  const span = Math.max(grid.nx * grid.dx, grid.ny * grid.dy) / 1000;
  return STEPS_KM.find((step) => span / step <= 8) ?? STEPS_KM[STEPS_KM.length - 1];
}

/** Lines every so many kilometres, with labels, and the frame of the grid. */
export function kilometreGrid(grid) {
  const group = L.layerGroup();
  const [[south, west], [north, east]] = boundsOf(grid);
  const step = 1000 * gridStep(grid);
  const style = { color: "#9aa3ab", weight: 0.6, interactive: false };
  for (let x = Math.ceil(west / step) * step; x <= east; x += step) {
    group.addLayer(L.polyline([[south, x], [north, x]], style));
    group.addLayer(gridLabel([south, x], `${x / 1000}`, "grid-label grid-label-x"));
  }
  for (let y = Math.ceil(south / step) * step; y <= north; y += step) {
    group.addLayer(L.polyline([[y, west], [y, east]], style));
    group.addLayer(gridLabel([y, west], `${y / 1000}`, "grid-label grid-label-y"));
  }
  group.addLayer(L.rectangle(boundsOf(grid), { color: "#6b7680", weight: 1, fill: false, interactive: false }));
  return group;
}

function gridLabel(place, text, className) {
  const words = document.createElement("span");
  words.textContent = text;
  const icon = L.divIcon({ html: words, className, iconSize: [40, 14] });
  return L.marker(place, { icon, interactive: false, keyboard: false });
}

/** Borders by kind; each line is a flat list of x and y. */
export function borderLines(borders) {
  const group = L.layerGroup();
  for (const [kind, lines] of Object.entries(borders)) {
    for (const line of lines) {
      const points = [];
      for (let k = 0; k < line.length; k += 2) points.push([line[k + 1], line[k]]);
      group.addLayer(L.polyline(points, { ...BORDERS[kind], interactive: false }));
    }
  }
  return group;
}

/** The perimeter of a fire: a red line with a white edge. Rings are flat lists of corners. */
export class Perimeter {
  constructor(grid, pane) {
    this.grid = grid;
    const common = { fill: false, interactive: false, pane };
    this.edge = L.polygon([], { ...common, color: "#ffffff", weight: 4 });
    this.line = L.polygon([], { ...common, color: FIRE, weight: 2 });
    this.group = L.layerGroup([this.edge, this.line]);
  }

  show(rings) {
    const places = rings.map((ring) => this.corners(ring));
    this.edge.setLatLngs(places);
    this.line.setLatLngs(places);
  }

  corners(ring) {
    const points = [];
    for (let k = 0; k < ring.length; k += 2) {
      points.push([this.grid.bottom + ring[k + 1] * this.grid.dy, this.grid.left + ring[k] * this.grid.dx]);
    }
    return points;
  }
}

/** Marks of places with their names; `chosen` is called with the place. */
export function placeMarks(places, pane, chosen) {
  const group = L.layerGroup();
  for (const place of places) {
    const name = document.createElement("span");
    name.textContent = place.name;
    const mark = L.circleMarker([place.y, place.x], {
      radius: 5, color: "#ffffff", weight: 2, fillColor: "#1f2933", fillOpacity: 1, pane,
    });
    mark.bindTooltip(name, { permanent: true, direction: "right", offset: [6, 0] });
    mark.on("click", (event) => {
      L.DomEvent.stopPropagation(event);
      chosen(place);
    });
    group.addLayer(mark);
  }
  return group;
}
