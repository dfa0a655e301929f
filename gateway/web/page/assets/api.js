// Requests to the server that sent this page. The cookie is the browser's; changes carry a second token.

const BASE = "api/v1";
let csrf = "";

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

async function ask(path, options = {}) {
  let answer;
  try {
    answer = await fetch(path, { credentials: "same-origin", cache: "no-store", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, { detail: "the server cannot be reached" });
  }
  const isText = (answer.headers.get("content-type") || "").startsWith("text/");
  let body;
  try {
    body = isText ? await answer.text() : await answer.json();
  } catch {
    body = {};
  }
  if (answer.ok) return body;
  if (answer.status === 401 && me) {
    me = null;
    access.onlost();
  }
  throw new Refused(answer.status, isText ? { detail: body } : body);
}

/** Read something below the interface. */
export const get = (path, options) => ask(`${BASE}${path}`, options);

/** Change something; `key` makes a repetition harmless. */
export function send(method, path, body, key) {
  const headers = { "x-csrf-token": csrf, "content-type": "application/json" };
  if (key) headers["idempotency-key"] = key;
  return ask(`${BASE}${path}`, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
}

/** Carry out a slash command that is given as data, and return its result. */
export const command = (session, name, args = {}) =>
  send("POST", `/sessions/${encodeURIComponent(session)}/commands`, { name, arguments: args }, newKey("button"));

function known(answer) {
  csrf = answer.csrf || "";
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
  await ask("leave", { method: "POST", headers: { "x-csrf-token": csrf } });
  me = null;
  access.onlost();
}

export const maySpeak = () => me !== null && me.scope !== "look";
export const mayApprove = () => me !== null && me.scope === "approve";

/** A key that no other request has; `kind` says where it came from. */
export function newKey(kind) {
  const random = crypto.getRandomValues(new Uint8Array(9));
  return `page-${kind}-${Array.from(random, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

export const eventsAddress = (session, after) =>
  `${BASE}/sessions/${encodeURIComponent(session)}/events?after=${after}`;
