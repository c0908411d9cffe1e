// A Leaflet layer that shows the levels of a grid as coloured cells, without smoothing.
// Leaflet is loaded before as the global L.

export const FieldLayer = L.ImageOverlay.extend({
  initialize(grid, options) {
    const bounds = [
      [grid.bottom, grid.left],
      [grid.bottom + grid.ny * grid.dy, grid.left + grid.nx * grid.dx],
    ];
    this._grid = grid;
    L.ImageOverlay.prototype.initialize.call(this, "", bounds, options);
  },

  _initImage() {
    const canvas = document.createElement("canvas");
    canvas.width = this._grid.nx;
    canvas.height = this._grid.ny;
    canvas.className = "leaflet-image-layer field-layer leaflet-zoom-animated";
    canvas.onselectstart = L.Util.falseFn;
    canvas.onmousemove = L.Util.falseFn;
    this._image = canvas;
  },

  /** Show levels (ny · nx bytes, south row first) with the colours (RGBA) of a scale. */
  setLevels(levels, colours) {
    paintLevels(this._image, levels, colours, this._grid);
  },

  canvas() {
    return this._image;
  },
});

/** Paint levels on a canvas of one pixel per cell, north up. */
export function paintLevels(canvas, levels, colours, grid) {
  const context = canvas.getContext("2d");
  const picture = context.createImageData(grid.nx, grid.ny);
  for (let row = 0; row < grid.ny; row += 1) {
    const from = (grid.ny - 1 - row) * grid.nx;
    for (let column = 0; column < grid.nx; column += 1) {
      const colour = 4 * levels[from + column];
      const to = 4 * (row * grid.nx + column);
      for (let part = 0; part < 4; part += 1) picture.data[to + part] = colours[colour + part];
    }
  }
  context.putImageData(picture, 0, 0);
}
