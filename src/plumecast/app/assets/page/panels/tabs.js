// Tabs: one panel at a time; arrow keys move between the tabs.

import { change, state, watch } from "../state.js";
import { find } from "../view/text.js";

/** Tabs of the panels; those `without` use here are left out. */
export function startTabs(without = []) {
  const nameOf = (tab) => tab.id.replace("tab-", "");
  for (const name of without) find(`tab-${name}`).hidden = true;
  const tabs = [...document.querySelectorAll("[role=tab]:not([hidden])")];
  const show = () => {
    const chosen = tabs.find((tab) => nameOf(tab) === state.panel) ?? tabs[0];
    for (const panel of document.querySelectorAll("[role=tabpanel]")) panel.hidden = true;
    for (const tab of tabs) {
      tab.setAttribute("aria-selected", tab === chosen);
      tab.tabIndex = tab === chosen ? 0 : -1;
      find(tab.getAttribute("aria-controls")).hidden = tab !== chosen;
    }
  };
  for (const [n, tab] of tabs.entries()) {
    tab.addEventListener("click", () => change({ panel: nameOf(tab) }));
    tab.addEventListener("keydown", (event) => {
      const to = { ArrowRight: n + 1, ArrowLeft: n - 1, Home: 0, End: tabs.length - 1 }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      const next = tabs[(to + tabs.length) % tabs.length];
      change({ panel: nameOf(next) });
      next.focus();
    });
  }
  watch((names) => names.has("panel") && show());
  show();
}
