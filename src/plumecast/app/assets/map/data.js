// Fields of a map: levels (bytes) in base64 of deflate, and what each level means.

export const NOTHING = 0;
export const MISSING = 255;

/** The bytes of a base64 text of zlib data. */
export async function inflate(text) {
  const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** The levels of one time of a field: rows from south to north. */
export function frameOf(levels, time, grid) {
  const cells = grid.nx * grid.ny;
  return levels.subarray(time * cells, (time + 1) * cells);
}

/** Hours for people: 6 → "6 h"; 0.8399989 → "0.84 h". */
export function hoursText(hours) {
  return `${Number(hours.toFixed(2))} h`;
}

/** Kilometres to 10 m, with a minus sign for people. */
export function kilometreText(kilometres) {
  return `${Number(kilometres.toFixed(2))} km`.replace("-", "−");
}

/** A number with three significant digits, without an exponent where it is readable. */
export function numberText(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  const text = size >= 1e6 || size < 1e-4 ? value.toExponential(2) : String(Number(value.toPrecision(3)));
  return text.replace("-", "−");
}

/** The value of a level in words, with its unit. */
export function valueText(level, scale, layer) {
  const unit = layer.units ? ` ${layer.units}` : "";
  if (level === MISSING) return "not known";
  if (layer.kind === "set") return level === NOTHING ? "no" : "yes";
  if (level === NOTHING && scale.kind === "signed") {
    return `within ±${numberText(scale.low)}${unit}`;
  }
  if (level === 1 && scale.kind === "log") return `less than ${numberText(scale.low)}${unit}`;
  return `${numberText(scale.values[level])}${unit}`;
}
