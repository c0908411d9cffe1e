// Elements, tables and numbers in words.

/** An element with attributes and children (strings become text: names are never parsed). */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/** An SVG shape, perhaps with text. */
export function shape(name, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

export const find = (id) => document.getElementById(id);

const SMALL = 0.001; // nobody reads smaller amounts of smoke, area or scores

/** Three significant digits, without exponents where people would not write them. */
export function short(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size < SMALL) return `< ${SMALL}`;
  if (size >= 1e6) return value.toExponential(1).replace("e+", "e").replace("-", "−");
  const digits = Math.max(0, 2 - Math.floor(Math.log10(size)));
  return value.toLocaleString("en", { maximumFractionDigits: digits }).replace("-", "−");
}

/** Units of files as people write them: "ug m-3" → "µg m⁻³". */
export function unitText(units) {
  const raised = (digits) => [...digits].map((digit) => RAISED[digit]).join("");
  return (units ?? "").replace(/^ug\b/, "µg").replace(/(?<=[a-z])-?[0-9]+\b/g, raised);
}
const RAISED = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };

const POINTS = ["north", "north-east", "east", "south-east", "south", "south-west", "west", "north-west"];
export const compass = (degrees) => POINTS[Math.round(degrees / 45) % 8];

/** Burned areas of snapshots are in acres. */
export const KM2_PER_ACRE = 0.0040468564224;

/** Elapsed hours: "6 h", "30 min". */
export const elapsed = (hours) => (hours < 1 ? `${Math.round(60 * hours)} min` : `${short(hours)} h`);

/** Names and values into a description list. */
export function describe(list, entries) {
  list.replaceChildren(
    ...entries.map(([term, value, id]) =>
      element("div", {}, element("dt", {}, term), element("dd", id ? { id } : {}, value)),
    ),
  );
}

/** A table with a caption; `columns` are headings, `rows` lists of strings, numbers or elements. */
export function fillTable(table, { caption, columns, rows }) {
  const cell = (value, first) =>
    first
      ? element("th", { scope: "row" }, value)
      : element("td", typeof value === "number" ? { class: "number" } : {}, typeof value === "number" ? short(value) : (value ?? "–"));
  table.replaceChildren(
    element("caption", {}, caption),
    element("thead", {}, element("tr", {}, ...columns.map((name) => element("th", { scope: "col" }, name)))),
    element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map((value, i) => cell(value, i === 0))))),
  );
  table.hidden = rows.length === 0;
}

/** Options of a select: `entries` are [value, text]; keeps `chosen` where it is among them. */
export function fillSelect(select, entries, chosen) {
  select.replaceChildren(...entries.map(([value, text]) => element("option", { value }, text)));
  if (entries.some(([value]) => String(value) === String(chosen))) select.value = chosen;
}
