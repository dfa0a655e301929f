// Notices of questions that wait, by the browser's push service: the switch below the list of sessions.

import { get, send } from "./api.js";
import { el } from "./dom.js";
import { complain } from "./queue.js";

const bytes = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (one) => one.charCodeAt(0));

/** A switch; hidden where this browser, or the host, has no push. */
export function noticesSwitch() {
  const box = el("input", { type: "checkbox", onchange: () => change(box) });
  const line = el("label.notices", { hidden: true }, box, el("span", "Tell me when a question waits"));
  look(box, line).catch(() => {});
  return line;
}

async function look(box, line) {
  if (!("serviceWorker" in navigator) || !("PushManager" in window)) return;
  const { key } = await get("/push");
  if (!key) return;
  const worker = await navigator.serviceWorker.register("worker.js");
  box.checked = Boolean(await worker.pushManager.getSubscription()) && Notification.permission === "granted";
  line.hidden = false;
}

async function change(box) {
  box.disabled = true;
  try {
    await (box.checked ? begin() : end());
  } catch (error) {
    box.checked = !box.checked;
    complain(error);
  }
  box.disabled = false;
}

async function begin() {
  if (await Notification.requestPermission() !== "granted") throw new Error("this browser does not let the page show notices");
  const worker = await navigator.serviceWorker.ready;
  const { key } = await get("/push");
  const made = (await worker.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: bytes(key) })).toJSON();
  await send("PUT", "/push", { endpoint: made.endpoint, ...made.keys });
}

async function end() {
  const worker = await navigator.serviceWorker.ready;
  const known = await worker.pushManager.getSubscription();
  if (!known) return;
  await send("DELETE", "/push", { endpoint: known.endpoint });
  await known.unsubscribe();
}
