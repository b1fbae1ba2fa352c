// The server: its routes, its errors, its streams. The key is kept for this tab and sent nowhere else.

import { kept } from "./dom.js";

/** What the server or the line to it said; `kind` is its `error.type`, `offline` and `broken` are the line's. */
export class Failure extends Error {
  constructor({ type, message, next_step: next = "", stage = null, request_id: id = null }, status = 0, retry = null) {
    super(message);
    Object.assign(this, { kind: type, next, stage, id, status, retry });
  }
}

let asking = null;
let askForKey = async () => null;

/** Say how a key is asked for; called once however many requests wait for it. */
export const onMissingKey = (ask) => { askForKey = ask; };

function headers(more = {}) {
  const key = kept("key");
  return key ? { ...more, Authorization: `Bearer ${key}` } : more;
}

async function failure(reply) {
  const body = await reply.json().catch(() => null);
  const told = body?.error ?? { type: "internal", message: `HTTP ${reply.status}` };
  return new Failure(told, reply.status, reply.headers.get("Retry-After"));
}

async function send(path, options = {}) {
  for (;;) {
    let reply;
    try {
      reply = await fetch(path, { ...options, headers: headers(options.headers), cache: "no-store" });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Failure({ type: "offline", message: "" });
    }
    if (reply.ok) return reply;
    const failed = await failure(reply);
    if (failed.status !== 401) throw failed;
    const had = kept("key");
    asking ??= askForKey(had !== null).finally(() => { asking = null; });
    if ((await asking) === null) throw failed;
  }
}

/** GET, or with a body POST, or whatever `method` says; gives the JSON of the reply. */
export async function call(path, { method, body, query, signal } = {}) {
  const pairs = Object.entries(query ?? {}).flatMap(([name, value]) => [value].flat().map((one) => [name, one]));
  const asked = new URLSearchParams(pairs.filter(([, value]) => value !== null && value !== undefined)).toString();
  const options = { method: method ?? (body ? "POST" : "GET"), signal };
  if (body) Object.assign(options, { body: JSON.stringify(body), headers: { "Content-Type": "application/json" } });
  const reply = await send(asked ? `${path}?${asked}` : path, options);
  return (reply.headers.get("content-type") ?? "").includes("json") ? reply.json() : reply.text();
}

/** GET a file; gives its content as a blob. */
export const file = async (path, query) => (await send(`${path}?${new URLSearchParams(query)}`)).blob();

/** Ask and hand every event of the stream to `on(name, data)`; gives the answer object. */
export async function stream(body, on, signal, path = "/api/v1/rag/query-stream") {
  const options = { method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" }, signal };
  const reply = await send(path, options);
  const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  let answer = null;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      const blocks = (text + value).split("\n\n");
      text = blocks.pop();
      for (const block of blocks) {
        const lines = block.split("\n");
        const name = lines.find((line) => line.startsWith("event: "))?.slice(7);
        const data = lines.find((line) => line.startsWith("data: "))?.slice(6);
        if (!name || data === undefined) continue; // a heartbeat, or the end
        const told = JSON.parse(data);
        if (name === "error") throw new Failure(told.error);
        if (name === "generation_complete") answer = told;
        else on(name, told);
      }
    }
  } catch (error) {
    if (error instanceof Failure || error.name === "AbortError") throw error;
    throw new Failure({ type: "broken", message: "" });
  }
  if (answer === null) throw new Failure({ type: "broken", message: "" });
  return answer;
}

/** Send a file up and tell how much of it is there. */
export function upload(file, onProgress) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const form = new FormData();
    form.append("file", file);
    request.open("POST", "/api/v1/documents");
    for (const [name, value] of Object.entries(headers())) request.setRequestHeader(name, value);
    request.upload.onprogress = (event) => event.lengthComputable && onProgress(event.loaded / event.total);
    request.onerror = () => reject(new Failure({ type: "offline", message: "" }));
    request.onload = () => {
      let told = null;
      try { told = JSON.parse(request.responseText); } catch { /* told below */ }
      if (request.status < 300 && told) resolve(told);
      else reject(new Failure(told?.error ?? { type: "internal", message: `HTTP ${request.status}` }, request.status));
    };
    request.send(form);
  });
}

/** Let the server read a file of a word processor. */
export async function textOf(file) {
  const body = new FormData();
  body.append("file", file);
  return (await (await send("/api/v1/verify/text", { method: "POST", body })).json()).text;
}

const passages = new Map();

/** Read a passage with one on each side; what was read once is kept until the page is left. */
export function passage(id) {
  if (!passages.has(id)) {
    const reading = call(`/api/v1/library/passages/${encodeURIComponent(id)}`, { query: { neighbours: 1 } });
    passages.set(id, reading);
    reading.catch(() => passages.delete(id));
  }
  return passages.get(id);
}
