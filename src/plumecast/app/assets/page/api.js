// Requests to the server. Every error that reaches the page is one sentence.

import { unitText } from "./view/text.js";

/** GET or POST, JSON in and out. */
export async function ask(path, { body, method, signal } = {}) {
  const response = await send(path, {
    method: method ?? (body === undefined ? "GET" : "POST"),
    headers: body === undefined ? {} : { "Content-Type": "application/json" },
    body: body === undefined ? undefined : JSON.stringify(body),
    signal,
  });
  return response.status === 204 ? null : response.json();
}

/** A field: {values: Float32Array (ny·nx, south first), ny, nx, units, hour}. */
export async function askField(path, { signal } = {}) {
  const response = await send(path, { signal });
  const [ny, nx] = response.headers.get("X-Shape").split(/[x,]/).map(Number);
  return {
    values: littleEndian(await response.arrayBuffer()),
    ny,
    nx,
    units: unitText(response.headers.get("X-Units")),
    hour: Number(response.headers.get("X-Hour")),
  };
}

/**
 * Server-sent events: `handlers` maps an event name to a function of its data. Resolves after
 * `last`, rejects after an `error` event, a lost connection or an abort.
 */
export function follow(path, { handlers, last, signal }) {
  return new Promise((resolve, reject) => {
    const source = new EventSource(path);
    const end = (settle, value) => {
      source.close();
      settle(value);
    };
    signal?.addEventListener("abort", () => end(reject, signal.reason), { once: true });
    for (const [name, handler] of Object.entries(handlers))
      source.addEventListener(name, (event) => {
        if (!signal?.aborted) handler(JSON.parse(event.data));
      });
    source.addEventListener(last, () => end(resolve));
    source.addEventListener("error", (event) => {
      const said = event.data ? JSON.parse(event.data) : null;
      end(reject, new Error(said?.error ?? "The connection to the server was lost. Is plumecast serve still running?"));
    });
  });
}

/** Put the sentence of `error` into `element`; an abort is no error. */
export function tell(element, error) {
  if (error?.name === "AbortError") return;
  const said = error?.message.trim() ?? "";
  const stop = said && !/[.!?]$/.test(said) ? "." : "";
  element.textContent = said.slice(0, 1).toUpperCase() + said.slice(1) + stop;
}

async function send(path, options) {
  const response = await fetch(path, options).catch((error) => {
    if (error.name === "AbortError") throw error;
    throw new Error("The server does not answer. Is plumecast serve still running?");
  });
  if (response.ok) return response;
  const said = await response.json().catch(() => ({}));
  throw new Error(said.error ?? `The server answered ${response.status} to ${path}.`);
}

function littleEndian(buffer) {
  const view = new DataView(buffer);
  return Float32Array.from({ length: buffer.byteLength / 4 }, (_, i) => view.getFloat32(4 * i, true));
}
