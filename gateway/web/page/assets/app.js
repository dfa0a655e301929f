// The page: pairing, the list of sessions, and the view that the address names.

import { access, get, leave, mayApprove, me, pair, send, whoAmI } from "./api.js";
import { CompareView } from "./compare.js";
import { ago, chip, el, fill, icon, moment, toast } from "./dom.js";
import { InsideView } from "./inside.js";
import { noticesSwitch } from "./notices.js";
import { complain } from "./queue.js";
import { SessionView, endOfRun, nameOf } from "./session.js";

const LOOK = 4000; // milliseconds between two looks at the list of sessions
const SOON = 200; // the same after the session that is shown has changed
const LOOK_AHEAD = 60_000; // the same for the schedules, unless a session has changed meanwhile
const app = document.getElementById("app");

let view = null;

// Pairing ------------------------------------------------------------------------------------------

const closeDialogs = () => document.querySelectorAll("dialog").forEach((box) => box.close());

function showPairing(why = "") {
  closeDialogs();
  view?.close();
  view = null;
  list.stop();
  document.title = "steersman";
  const input = el("input", { id: "code", type: "text", autocomplete: "one-time-code", autocapitalize: "characters", spellcheck: "false", placeholder: "ABCD-EFGH", required: true });
  const problem = el("p.problem", { role: "alert" }, why);
  const form = el("form.pairing", { onsubmit: (event) => {
    event.preventDefault();
    tryCode(input.value, problem);
  } }, el("h1", "steersman"), el("p", "This browser is not paired. At the machine that serves this page:"),
    el("pre", { tabindex: "0", role: "region", "aria-label": "Command" }, el("code", "steersman devices pair NAME")),
    el("label", { for: "code" }, "Code"), input, el("button.accent", { type: "submit" }, "Pair"), problem);
  document.body.className = "at-pairing";
  fill(app, el("main.pairing-place", form));
  input.focus();
}

async function tryCode(code, problem) {
  try {
    await pair(code);
    begin();
  } catch (error) {
    if (problem) problem.textContent = error.message;
    else if (me) {
      begin();
      toast(`${error.message}; this browser stays paired as ${me.name}`, true);
    } else showPairing(error.message);
  }
}

// The list of sessions -----------------------------------------------------------------------------

const list = {
  rows: [],
  place: el("ul.sessions"),
  filter: el("input.filter", { type: "search", placeholder: "Find a session", "aria-label": "Find a session" }),

  /** Load it now and from time to time; the promise ends with the first time. */
  start() {
    this.stop();
    this.timer = setInterval(() => !document.hidden && this.load(), LOOK);
    return this.load();
  },

  stop() {
    clearInterval(this.timer);
  },

  /** Look again at once: the session that is shown has another state now. */
  lookSoon() {
    clearTimeout(this.soon);
    this.soon = setTimeout(() => this.load(), SOON);
  },

  async load() {
    try {
      this.words = this.filter.value.trim();
      this.rows = (await get(`/sessions?find=${encodeURIComponent(this.words)}`)).sessions;
      this.isLoaded = true;
      this.draw();
      await schedules.follow(this.rows);
    } catch (error) {
      if (error.status) complain(error);
    }
  },

  draw() {
    const current = address().session;
    const drawn = JSON.stringify([this.rows, current, Math.floor(Date.now() / 60000)]);
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    const focused = this.place.contains(document.activeElement) ? document.activeElement.getAttribute("href") : "";
    fill(this.place, this.rows.map((row) => el("li", el("a.session-link", { href: `#/s/${row.id}`, "aria-current": row.id === current ? "page" : null },
      el("span.session-name", nameOf(row)), stateOf(row), el("span.session-about", row.folder.replace(/^\/(home|Users)\/[^/]+/, "~")),
      el("span.session-when", ago(row.updated))))),
      !this.rows.length && el("li.muted", this.words ? "None is called so." : this.isLoaded ? "There is no session yet." : "…"));
    this.filter.hidden = !this.words && this.rows.length < 6;
    if (focused) [...this.place.querySelectorAll("a")].find((link) => link.getAttribute("href") === focused)?.focus();
  },
};
// What happens at planned times, and what came of it last.
const schedules = {
  list: el("ul.schedules"),
  place: el("section.schedules-place", { "aria-labelledby": "schedules-title" }, el("h2", { id: "schedules-title" }, "Schedules")),
  at: 0,

  async follow(rows) {
    const newest = Math.max(0, ...rows.map((row) => row.updated));
    if (newest === this.newest && Date.now() - this.at < LOOK_AHEAD) return;
    [this.newest, this.at] = [newest, Date.now()];
    const found = (await get("/schedules")).schedules;
    this.place.hidden = found.length === 0;
    fill(this.list, found.map((schedule) => this.row(schedule)));
  },

  row({ name, next, last, fault }) {
    const link = last?.session && el("a", { href: `#/s/${last.session}`, "aria-label": `Open what ${name} did` }, "open");
    return el("li.schedule", el("p.schedule-head", el("b", name), next && el("span.muted", `next ${moment(next)}`)),
      last && el("p.schedule-last", chip(last.outcome), el("span", `${moment(last.planned)}${last.count > 1 ? `, ${last.count} times` : ""}`), link),
      last?.said && el("p.schedule-said", last.said), last?.reason && el("p.muted", last.reason),
      fault && el("p.problem", `cannot be carried out: ${fault}`));
  },
};
schedules.place.append(schedules.list);
schedules.place.hidden = true;

list.filter.addEventListener("input", () => list.lookSoon());

function stateOf(row) {
  if (row.state === "finalized") return chip("finalized", "ended");
  if (row.needs) return chip("asking", "waits for you");
  if (row.state === "running") return chip("running", row.waiting ? `working, ${row.waiting} waiting` : "working");
  if (row.interrupted) return chip("interrupted");
  if (row.waiting) return chip("pending", `${row.waiting} waiting`);
  if (row.result) return chip(...endOfRun(row.result));
  return row.open === "no" ? chip("suspended", "closed") : chip("idle", "ready");
}

const OTHER = ""; // the choice of a folder in which there is no session yet

/** A field to choose from `[value, word]` pairs. */
const choice = (id, pairs, more = {}) => el("select", { id, ...more }, pairs.map(([value, word]) => el("option", { value }, word)));

function newSession() {
  const folders = [...new Set(list.rows.map((row) => row.folder))].slice(0, 20);
  const known = choice("folder", [...folders.map((one) => [one, one]), [OTHER, "another folder…"]], { onchange: () => follow() });
  const other = el("input", { type: "text", "aria-label": "Another folder", placeholder: "/home/ann/project", onchange: () => follow() });
  const agent = choice("agent", []);
  const model = choice("model", []);
  const begin = el("button.accent", { type: "submit" }, "Begin");
  const folder = () => known.value || other.value.trim();
  /** Offer the agents and models of the folder that is chosen. */
  async function follow() {
    other.hidden = known.value !== OTHER;
    other.required = !other.hidden;
    const there = await get(`/choices?folder=${encodeURIComponent(folder())}`).catch(() => ({ agents: [], models: [] }));
    const usual = there.agent ? `as configured: ${there.agent}` : "as configured";
    fill(agent, el("option", { value: "" }, usual), there.agents.map((one) => el("option", { value: one }, one)));
    fill(model, el("option", { value: "" }, "as configured"), there.models.map((one) => el("option", { value: one }, one)));
  }
  follow();
  return el("form.new-session", { onsubmit: async (event) => {
    event.preventDefault();
    begin.disabled = true;
    try {
      const row = await send("POST", "/sessions", { folder: folder(), agent: agent.value, model: model.value });
      location.hash = `#/s/${row.id}`;
      list.load();
    } catch (error) {
      complain(error);
    }
    begin.disabled = false;
  } }, el("h2", "New session"), el("label", { for: "folder" }, "Folder"), known, other,
    el("label", { for: "agent" }, "Agent"), agent, el("label", { for: "model" }, "Model"), model, begin);
}

// The frame ----------------------------------------------------------------------------------------

const viewPlace = el("div.view");

function drawFrame() {
  const who = el("footer.who", noticesSwitch(), el("span", `${me.name} may ${me.scope}`),
    el("button.quiet", { type: "button", onclick: () => leave().catch(complain) }, "Forget this device"));
  const nav = el("nav.side", { "aria-label": "Sessions" }, el("header.side-head", el("a.brand", { href: "#/" }, "steersman"),
    mayApprove() && el("a.icon-button", { href: "#/new", "aria-label": "New session", title: "New session" }, icon("plus"))), list.filter, el("div.side-scroll", list.place, schedules.place), who);
  fill(app, nav, viewPlace);
}

function address() {
  const [, session = "", part = "", other = ""] = /^#\/s\/([\w-]+)(?:\/(inside|beside)(?:\/([\w-]+))?)?$/.exec(location.hash) || [];
  return { session, part, other, isNew: location.hash === "#/new" };
}

function welcome(isNew) {
  const node = el("main.welcome", isNew ? el("a.icon-button.only-narrow", { href: "#/", "aria-label": "All sessions" }, icon("back")) : null,
    el("h1", isNew ? "New session" : "Sessions"), !isNew && el("p.muted", `Choose a session${mayApprove() ? ", or begin one" : ""}.`), mayApprove() && newSession());
  return { node, open() {
    document.title = "steersman";
    if (isNew) node.querySelector("select")?.focus();
  }, close() {} };
}

function route() {
  const code = codeIn(location.hash);
  if (code) return void pairBy(code);
  if (!me) return;
  const where = address();
  closeDialogs();
  view?.close();
  view = where.session ? viewOf(where) : welcome(where.isNew);
  document.body.className = where.session || where.isNew ? "at-view" : "at-list";
  fill(viewPlace, view.node);
  view.open();
  list.draw();
}

function viewOf({ session, part, other }) {
  if (part === "beside") return new CompareView(session, other);
  return part === "inside" ? new InsideView(session) : new SessionView(session);
}

const codeIn = (hash) => /^#pair=([\w-]+)$/.exec(hash)?.[1] || "";

function pairBy(code) {
  history.replaceState(null, "", location.pathname);
  return tryCode(code, null);
}

async function begin() {
  drawFrame();
  const loaded = list.start();
  if (!address().session) await loaded; // a new session is offered the folders that are known
  route();
}

access.onlost = () => showPairing("This device was shut out.");
addEventListener("hashchange", route);
addEventListener("session-changed", () => list.lookSoon());
addEventListener("unhandledrejection", (event) => {
  if (event.reason?.name !== "AbortError") toast(`Something failed: ${event.reason?.message || event.reason}`, true);
});

async function start() {
  const code = codeIn(location.hash);
  try {
    await whoAmI();
  } catch (error) {
    fill(app, el("main.pairing-place", el("p", `${error.message}; trying again…`)));
    setTimeout(start, 2000);
    return;
  }
  if (code) await pairBy(code);
  else if (me) begin();
  else showPairing();
}

start();
