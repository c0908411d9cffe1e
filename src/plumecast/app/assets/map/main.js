// Start the viewer of a page that contains its data.

import { Viewer } from "./viewer.js";

const viewer = new Viewer(document, JSON.parse(document.getElementById("map-data").textContent));
document.documentElement.dataset.state = "loading";
viewer.start().then(
  () => { document.documentElement.dataset.state = "ready"; },
  (error) => {
    const words = document.querySelector('[data-part="problem"]');
    words.hidden = false;
    words.textContent = `This browser could not show the map (${error.message}). Use Firefox 113, Chrome 103, Safari 16.4 or later.`;
  },
);
