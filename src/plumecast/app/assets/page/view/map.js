// The map: landscape below, smoke, kilometre grid, perimeter, ignition, places and cross above.
//
// Coordinates are metres of the grid; (x0, y0) is its south-western corner.

const STEP = 10; // cells per arrow key with Shift
const TALLEST = 54; // % of the window: the time slider stays in sight
const DRAG = 6; // pixels that make a click a line

/** Extent of the grid in metres. */
export function extent({ nx, ny, x0, y0, dx, dy }) {
  return { left: x0, bottom: y0, width: nx * dx, height: ny * dy };
}

/**
 * A map in `host` with two canvases. `onPick(points)` gets one point, or a line; `onCross(point)`
 * follows the keyboard's cross. Returns {show, drawLand}.
 */
export function createMap(host, { grid, land, sky, onPick, onCross, canDrag }) {
  const box = extent(grid);
  let scene = { picture: null, opacity: 1, edges: [], ignite: [], places: [] };
  let cross = null;
  let drag = null;
  host.style.aspectRatio = `${box.width} / ${box.height}`;
  host.style.width = `min(100%, calc(${TALLEST}vh * ${box.width / box.height}))`;

  const size = () => ({ width: host.clientWidth, height: host.clientHeight });
  const toPixel = ([x, y]) => [
    ((x - box.left) / box.width) * size().width,
    (1 - (y - box.bottom) / box.height) * size().height,
  ];
  const toMetres = (event) => {
    const frame = host.getBoundingClientRect();
    const inside = (value) => Math.min(0.9999, Math.max(0.0001, value));
    return [
      box.left + inside((event.clientX - frame.x - host.clientLeft) / host.clientWidth) * box.width,
      box.bottom + (1 - inside((event.clientY - frame.y - host.clientTop) / host.clientHeight)) * box.height,
    ];
  };

  const draw = () => {
    const context = fitted(sky, size());
    if (scene.picture) {
      context.globalAlpha = scene.opacity;
      context.imageSmoothingEnabled = true;
      context.drawImage(scene.picture, 0, 0, size().width, size().height);
      context.globalAlpha = 1;
    }
    drawGrid(context, box, { toPixel, size: size() });
    drawPerimeter(context, scene.edges, toPixel);
    drawIgnition(context, (drag?.line ?? scene.ignite).map(toPixel));
    scene.places.forEach((place) => drawPlace(context, toPixel([place.x, place.y]), place));
    if (cross && document.activeElement === host) drawCross(context, toPixel(cross));
  };

  const drawLand = (image) => {
    paintLand(fitted(land, size()), image, size());
  };

  host.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    host.setPointerCapture(event.pointerId);
    drag = { from: toMetres(event), start: [event.clientX, event.clientY], line: null };
  });
  host.addEventListener("pointermove", (event) => {
    if (!drag || !canDrag()) return;
    const far = Math.hypot(event.clientX - drag.start[0], event.clientY - drag.start[1]) > DRAG;
    drag.line = far ? [drag.from, toMetres(event)] : null;
    draw();
  });
  host.addEventListener("pointerup", () => {
    if (!drag) return;
    const points = drag.line ?? [drag.from];
    drag = null;
    onPick(points);
  });
  host.addEventListener("pointercancel", () => {
    drag = null;
    draw();
  });
  host.addEventListener("keydown", (event) => {
    const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    const by = moves[event.key];
    if (!by && event.key !== "Enter") return;
    event.preventDefault();
    cross ??= scene.ignite[0] ?? [box.left + box.width / 2, box.bottom + box.height / 2];
    if (!by) return onPick([cross]);
    const cells = event.shiftKey ? STEP : 1;
    cross = [
      clamp(cross[0] + by[0] * cells * grid.dx, box.left + grid.dx / 2, box.left + box.width - grid.dx / 2),
      clamp(cross[1] + by[1] * cells * grid.dy, box.bottom + grid.dy / 2, box.bottom + box.height - grid.dy / 2),
    ];
    draw();
    onCross(cross);
  });
  for (const name of ["focus", "blur"]) host.addEventListener(name, draw);

  return {
    drawLand,
    show(changes = {}) {
      scene = { ...scene, ...changes };
      draw();
    },
  };
}

/** The landscape, if there is one, pale: the colours of smoke must stand out from it. */
export function paintLand(context, image, { width, height }) {
  context.fillStyle = "#f4f4ef";
  context.fillRect(0, 0, width, height);
  if (!image) return;
  context.globalAlpha = 0.5;
  context.drawImage(image, 0, 0, width, height);
  context.globalAlpha = 1;
}

/** Edges between burned and unburned cells of a field, as [[x, y], [x, y]] in metres. */
export function perimeterEdges(field, grid) {
  const { left, bottom, width, height } = extent(grid);
  const [dx, dy] = [width / field.nx, height / field.ny];
  const burned = (i, j) => i >= 0 && j >= 0 && i < field.nx && j < field.ny && field.values[j * field.nx + i] > 0;
  const edges = [];
  for (let j = 0; j <= field.ny; j++)
    for (let i = 0; i <= field.nx; i++) {
      const [x, y] = [left + i * dx, bottom + j * dy];
      if (burned(i, j) !== burned(i - 1, j)) edges.push([[x, y], [x, y + dy]]);
      if (burned(i, j) !== burned(i, j - 1)) edges.push([[x, y], [x + dx, y]]);
    }
  return edges;
}

const clamp = (value, low, high) => Math.min(high, Math.max(low, value));

/** The cleared context of a canvas, in CSS pixels at the resolution of the screen. */
function fitted(canvas, { width, height }) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  return context;
}

function drawGrid(context, box, { toPixel, size }) {
  const raw = Math.max(box.width, box.height) / 6;
  const ten = 10 ** Math.floor(Math.log10(raw));
  const step = ten * [1, 2, 2.5, 5, 10].find((times) => times * ten >= raw * 0.99);
  context.strokeStyle = "rgb(0 0 0 / 0.22)";
  context.lineWidth = 1;
  context.font = "11px system-ui, sans-serif";
  for (let x = Math.ceil(box.left / step) * step; x < box.left + box.width; x += step) {
    const [px] = toPixel([x, box.bottom]);
    line(context, [px, 0], [px, size.height]);
    if (px > 24 && px < size.width - 40) haloed(context, `${x / 1000} km`, px + 3, size.height - 5);
  }
  for (let y = Math.ceil(box.bottom / step) * step; y < box.bottom + box.height; y += step) {
    const [, py] = toPixel([box.left, y]);
    line(context, [0, py], [size.width, py]);
    if (py > 14 && py < size.height - 18) haloed(context, `${y / 1000} km`, 4, py - 3);
  }
}

function drawPerimeter(context, edges, toPixel) {
  for (const [style, width] of [["#ffffff", 4], ["#b3200c", 2]]) {
    context.strokeStyle = style;
    context.lineWidth = width;
    context.beginPath();
    for (const [from, to] of edges) {
      context.moveTo(...toPixel(from));
      context.lineTo(...toPixel(to));
    }
    context.stroke();
  }
}

function drawIgnition(context, pixels) {
  if (!pixels.length) return;
  for (const [style, width] of [["#ffffff", 7], ["#d22b0a", 4]]) {
    context.strokeStyle = context.fillStyle = style;
    context.lineWidth = width;
    context.lineCap = "round";
    for (let i = 1; i < pixels.length; i++) line(context, pixels[i - 1], pixels[i]);
    for (const [x, y] of [pixels[0], pixels.at(-1)]) {
      context.beginPath();
      context.arc(x, y, width, 0, 2 * Math.PI);
      context.fill();
    }
  }
}

function drawPlace(context, [x, y], { name }) {
  context.fillStyle = "#ffffff";
  context.strokeStyle = "#14213d";
  context.lineWidth = 2;
  context.beginPath();
  context.rect(x - 4, y - 4, 8, 8);
  context.fill();
  context.stroke();
  context.font = "600 12px system-ui, sans-serif";
  // A name that would leave the map is written on the other side of its place.
  const wide = context.measureText(name).width;
  const room = x + 8 + wide < context.canvas.clientWidth || x < wide + 8;
  haloed(context, name, room ? x + 8 : x - 8 - wide, y + 4);
}

function drawCross(context, [x, y]) {
  for (const [style, width] of [["#ffffff", 4], ["#14213d", 2]]) {
    context.strokeStyle = style;
    context.lineWidth = width;
    line(context, [x - 12, y], [x + 12, y]);
    line(context, [x, y - 12], [x, y + 12]);
  }
}

function line(context, from, to) {
  context.beginPath();
  context.moveTo(...from);
  context.lineTo(...to);
  context.stroke();
}

function haloed(context, text, x, y) {
  context.strokeStyle = "rgb(255 255 255 / 0.85)";
  context.lineWidth = 3;
  context.lineJoin = "round";
  context.strokeText(text, x, y);
  context.fillStyle = "#14213d";
  context.fillText(text, x, y);
  context.strokeStyle = "rgb(0 0 0 / 0.22)";
  context.lineWidth = 1;
}
