// Requests to the server that sent this page. They carry the browser's cookie, which it sends to every port of
// this host, and the page key, which it lets only pages of this very host and port read.

const BASE = "api/v1";
const KEY = "steersman-page-key";

const proof = () => ({ "x-page-key": localStorage.getItem(KEY) || "" });

/** Who this device is: `{name, scope}`; null if it is not paired. */
export let me = null;

/** A refusal: `status` (0: no connection), `message` for people, `hint`, and the server's whole answer. */
export class Refused extends Error {
  constructor(status, body) {
    super(body.detail || `the server answered ${status}`);
    this.status = status;
    this.hint = body.hint || "";
    this.body = body;
  }
}

/** Called when the device turns out not to be paired, or not any more. */
export const access = { onlost: () => {} };

/** Send a request; return the answer if it is not a refusal. */
async function request(path, { headers, ...options } = {}) {
  const own = { credentials: "same-origin", cache: "no-store", redirect: "error" };
  let answer;
  try {
    answer = await fetch(path, { ...own, ...options, headers: { ...proof(), ...headers } });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, { detail: "the server cannot be reached" });
  }
  if (answer.ok) return answer;
  if (answer.status === 401 && me) {
    me = null;
    access.onlost();
  }
  throw new Refused(answer.status, await bodyOf(answer));
}

async function bodyOf(answer) {
  const isText = (answer.headers.get("content-type") || "").startsWith("text/");
  try {
    return isText ? { detail: await answer.text() } : await answer.json();
  } catch {
    return {};
  }
}

async function ask(path, options) {
  const answer = await request(path, options);
  const isText = (answer.headers.get("content-type") || "").startsWith("text/");
  try {
    return await (isText ? answer.text() : answer.json());
  } catch (error) {
    if (error.name === "AbortError") throw error;
    return {};
  }
}

/** Read something below the interface. */
export const get = (path, options) => ask(`${BASE}${path}`, options);

/** Change something; `key` makes a repetition harmless. */
export function send(method, path, body, key = newKey("button")) {
  const headers = { "content-type": "application/json", "idempotency-key": key };
  const sent = body === undefined ? undefined : JSON.stringify(body);
  return ask(`${BASE}${path}`, { method, headers, body: sent, keepalive: method === "DELETE" });
}

/** Carry out a slash command that is given as data, and return its result. */
export const command = (session, name, args = {}) =>
  send("POST", `/sessions/${encodeURIComponent(session)}/commands`, { name, arguments: args });

function known(answer) {
  if (answer.page_key) localStorage.setItem(KEY, answer.page_key);
  me = { name: answer.name, scope: answer.scope };
  return me;
}

/** Learn who this device is; null if it is not paired. */
export async function whoAmI() {
  try {
    return known(await ask("me"));
  } catch (error) {
    if (error.status !== 401) throw error;
    me = null;
    return null;
  }
}

/** Pair this browser by a code. */
export async function pair(code) {
  const headers = { "content-type": "application/json" };
  return known(await ask("pair", { method: "POST", headers, body: JSON.stringify({ code }) }));
}

/** Forget this device. */
export async function leave() {
  await ask("leave", { method: "POST" });
  localStorage.removeItem(KEY);
  me = null;
  access.onlost();
}

export const maySpeak = () => me !== null && me.scope !== "look";
export const mayApprove = () => me !== null && me.scope === "approve";

const random = crypto.getRandomValues(new Uint8Array(9));
const PAGE = `page-${Array.from(random, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
let keys = 0;

/** A key that no other request has; `kind` says where it came from. */
export const newKey = (kind) => `${PAGE}-${kind}-${(keys += 1)}`;

/** Whether a key is of this page, since it was loaded. */
export const isOwn = (key) => Boolean(key?.startsWith(`${PAGE}-`));

/**
 * Read the events of a session after an entry as they come, until the stream is cut or `signal` ends it:
 * `onopen()` once it is there, `onsign()` for whatever comes, `ontake(event)` for each event. An `EventSource` could not send the page key.
 * The format: https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream
 */
export async function readEvents(session, after, { signal, onopen, onsign, ontake }) {
  const path = `${BASE}/sessions/${encodeURIComponent(session)}/events?after=${after}`;
  const answer = await request(path, { signal, headers: { accept: "text/event-stream" } });
  onopen();
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let data = [];
  for (;;) {
    const { value, done } = await reader.read();
    if (done || signal.aborted) return;
    onsign();
    const lines = (rest + value).split(/\r?\n/);
    rest = lines.pop();
    for (const line of lines) {
      if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""));
      else if (line === "" && data.length) {
        const event = JSON.parse(data.join("\n"));
        data = [];
        ontake(event);
        if (signal.aborted) return;
      }
    }
  }
}
