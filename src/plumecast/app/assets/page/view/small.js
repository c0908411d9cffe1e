// Small maps beside each other: a field on the landscape with a caption.

import { extent, paintLand } from "./map.js";
import { picture } from "./scale.js";
import { element } from "./text.js";

const PIXELS = 320;
let land = Promise.resolve(null);

/** Read the landscape that small maps are drawn on. */
export function useLand() {
  land = loaded("api/landscape.png");
}

/** Figures of `maps` = [{title, field, scale, says}] in `host`; `says` describes the picture. */
export async function drawSmall(host, grid, maps) {
  const image = await land;
  const { width, height } = extent(grid);
  const figures = maps.map(({ title, field, scale, says }) => {
    const canvas = element("canvas", { width: PIXELS, height: Math.round((PIXELS * height) / width), role: "img", "aria-label": says });
    const context = canvas.getContext("2d");
    paintLand(context, image, canvas);
    context.globalAlpha = 0.9;
    context.drawImage(picture(field, scale), 0, 0, canvas.width, canvas.height);
    return element("figure", {}, canvas, element("figcaption", {}, title));
  });
  host.replaceChildren(...figures);
}

function loaded(source) {
  return new Promise((resolve) => {
    const image = new Image();
    image.addEventListener("load", () => resolve(image));
    image.addEventListener("error", () => resolve(null)); // a map without hillshade is still a map
    image.src = source;
  });
}
