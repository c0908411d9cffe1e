// Download: files of the present fire, and a link that holds the state of the page.

import { fire, watchFire } from "../fire.js";
import { state, watch } from "../state.js";
import { elapsed, find } from "../view/text.js";

/** `shown()` is the checkpoint on the map. */
export function startDownload(shown) {
  const show = () => {
    const ready = Boolean(fire?.id) && !fire.running;
    find("download-empty").hidden = ready;
    find("downloads").hidden = !ready;
    find("link").value = location.href;
    find("copied").textContent = "";
    if (!ready) return;
    const k = shown();
    const query = new URLSearchParams({ layer: state.layer, ...(state.quantity ? { quantity: state.quantity } : {}) });
    find("get-nc").href = `api/fires/${fire.id}.nc`;
    find("get-tif").href = `api/fires/${fire.id}/${k}.tif?${query}`;
    find("get-png").href = `api/fires/${fire.id}/frames/${k}.png?${query}`;
    find("tif-hour").textContent = `the layer on the map, after ${elapsed(fire.hours[k])}`;
  };
  find("copy").addEventListener("click", async () => {
    const field = find("link");
    field.value = location.href;
    field.select();
    try {
      await navigator.clipboard.writeText(field.value);
      find("copied").textContent = "Link copied.";
    } catch (error) {
      if (!(error instanceof DOMException || error instanceof TypeError)) throw error;
      find("copied").textContent = "The browser does not allow copying: the link is selected, copy it by hand.";
    }
  });
  watch(show);
  watchFire(show);
  show();
}
