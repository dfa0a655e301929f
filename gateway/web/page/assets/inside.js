// Inside a session: its parts with their states, the messages of a turn, and both at any entry of the journal.

import { get } from "./api.js";
import { chip, clock, counted, dialog, el, fill, icon, iconButton, plain } from "./dom.js";
import { complain } from "./queue.js";

const PAUSE = 120; // milliseconds that the slider rests before the moment is asked for
const FRESH = 1500; // milliseconds between two looks at what happens now

// Why ----------------------------------------------------------------------------------------------

/** Show the history of a message: each entry about it, what it moved, and where it stands. */
export async function showWhy(path, message) {
  const story = await get(`${path}/why?message=${encodeURIComponent(message)}`);
  const { message: about, hops } = story;
  dialog(`Why ${about.number ? `#${about.number}` : about.id}`,
    el("blockquote", about.text), el("p", chip(about.state), about.user && ` from ${about.user}`),
    el("p.outlook", story.outlook), story.hint && el("p.muted", story.hint),
    el("ol.hops", hops.map((hop) => el("li",
      el("div.hop-time", el("time", { datetime: hop.time }, hop.after ? `+${hop.after} s` : clock(hop.time)), el("span.muted", `entry ${hop.seq}`)),
      el("div", el("p", hop.text), hop.moved.map((move) => el("p.moved", `${move.what} `, chip(move.from || "none", move.from || "new"), " → ", chip(move.to))))))));
}

// The tree of parts --------------------------------------------------------------------------------

const part = (title, machine, state, about = [], twigs = []) => ({ title, machine, state, about: about.filter(Boolean), twigs });

/** The parts of a dump: the actors, and below each what it keeps. */
function partsOf(dump) {
  const actors = dump.actors || {};
  const used = new Set();
  const actor = (name) => {
    if (used.has(name) || !actors[name]) return null;
    used.add(name);
    const report = actors[name];
    const mail = report.mailbox && report.mailbox.system + report.mailbox.control + report.mailbox.data;
    const about = [report.id && `id ${report.id}`, report.waiting_for && `waits for ${report.waiting_for}`, report.rule && `by rule ${report.rule}`,
      mail ? `${counted(mail, "message")} in the mailbox` : "", report.last_message && `last ${report.last_message}`,
      report.restarts ? counted(report.restarts, "restart") : "", report.supervised && report.supervised !== "running" ? report.supervised : ""];
    return part(name === "session" ? `session ${dump.id}` : name, report.machine, report.state, about,
      [...kept(name, report.machine), ...report.children.map(actor).filter(Boolean)]);
  };
  const kept = (name, machine) => {
    if (name === "queue") return items(dump);
    if (machine === "turn") return calls(dump.turns?.[dump.turn]);
    if (name === "children") return children(dump);
    if (name === "session") return [...interrupts(dump), ...steps(dump)];
    return [];
  };
  const tree = ["session", ...Object.keys(actors)].map(actor).filter(Boolean);
  const goal = dump.goals?.goals?.[dump.goals.current];
  if (goal && !actors.goal) tree.push(part("goal", "goal", goal.state, [goal.text]));
  return tree;
}

const items = (dump) => (dump.queue?.order || []).map((id) => dump.queue.items[id]).filter(Boolean)
  .map((item) => part(`#${item.number}`, "item", item.state || "pending", [item.text, item.user && `from ${item.user}`]));
const calls = (turn) => Object.values(turn?.calls || {}).map((call) =>
  part(`${call.tool} ${call.id}`, "call", call.state || "requested", [Object.values(call.arguments || {}).map(String).join(", ").slice(0, 160), call.pid && `process ${call.pid}`]));
const children = (dump) => Object.values(dump.children || {}).map((child) =>
  part(child.name, "subagent", child.state, [child.task], dump.subagents?.[child.name] ? partsOf(dump.subagents[child.name]) : []));
const interrupts = (dump) => Object.values(dump.stops || {}).filter((stop) => ["planned", "stopping"].includes(stop.state))
  .map((stop) => part(`interrupt ${stop.id}`, "interrupt", stop.state, [`by ${stop.cause}`]));
const steps = (dump) => Object.values(dump.run?.steps || {}).map((step) => part(`step ${step.id}`, "step", step.state, [step.reason]));

let machines = null;

/** All states of a part's machine in a row; the one that it is in is lit. */
function lights(machine, state) {
  const known = machines?.[machine];
  if (!known || !known.some((one) => one.name === state)) return el("p.lights", chip(state));
  return el("ul.lights", { "aria-label": `States of the machine ${machine}` }, known.map((one) => one.name === state
    ? el(`li.light.is-lit.is-${one.name}`, { "aria-current": "true", title: one.doc }, one.name)
    : el("li.light", { title: one.doc }, one.name)));
}

const branch = (one) => el("li", el("div.part", el("p.part-title", el("b", one.title)), lights(one.machine, one.state),
  one.about.length > 0 && el("p.part-about", one.about.join(" · "))), one.twigs.length > 0 && el("ul.tree", one.twigs.map(branch)));

// The messages of a turn ---------------------------------------------------------------------------

const CODES = /#(\d+);/g;
const unescaped = (text) => text.replace(CODES, (_, code) => String.fromCodePoint(Number(code)));

/** Read the Mermaid text of a sequence diagram: who takes part, and the messages between them. */
export function readSequence(text) {
  const parties = new Map();
  const messages = [];
  for (const line of text.split("\n").map((line) => line.trim())) {
    let found;
    if ((found = /^(?:actor|participant) (\w+) as (.*)$/.exec(line))) parties.set(found[1], unescaped(found[2]));
    else if ((found = /^(\w+?)(--?>>|--?x)(\w+): (.*)$/.exec(line))) messages.push({ from: found[1], how: found[2], to: found[3], text: unescaped(found[4]) });
    else if ((found = /^%% entry (\d+), (\S+), (\w+)$/.exec(line))) Object.assign(messages.at(-1) || {}, { seq: Number(found[1]), time: found[2], kind: found[3] });
  }
  return { parties, messages };
}

function drawSequence({ parties, messages }, onpick) {
  const names = [...parties.keys()];
  const grid = el("ol.sequence");
  grid.style.setProperty("--parties", String(names.length));
  const place = (node, from, to) => {
    node.style.gridColumn = `${from + 1} / ${to + 2}`;
    return node;
  };
  grid.append(el("li.sequence-heads", { "aria-hidden": "true" }, names.map((name, at) => place(el("span", parties.get(name)), at, at))));
  for (const message of messages) {
    const [from, to] = [names.indexOf(message.from), names.indexOf(message.to)];
    const [left, right] = [Math.min(from, to), Math.max(from, to)];
    const isAnswer = message.how.startsWith("--");
    const isBad = message.how.endsWith("x");
    const arrow = place(el(`span.arrow${from < to ? ".to-right" : from > to ? ".to-left" : ".to-self"}${isAnswer ? ".is-answer" : ""}${isBad ? ".is-bad" : ""}`), left, right);
    arrow.style.setProperty("--span", String(right - left + 1));
    const words = place(el("span.arrow-text", el("span.unseen", `${parties.get(message.from)} to ${parties.get(message.to)}: `), message.text), left, right);
    const label = message.seq ? el("button.entry-link", { type: "button", onclick: () => onpick(message.seq), "aria-label": `Go to entry ${message.seq}` }, String(message.seq)) : null;
    grid.append(el("li", words, arrow, label));
  }
  return grid;
}

// The view -----------------------------------------------------------------------------------------

export class InsideView {
  constructor(id) {
    this.id = id;
    this.path = `/sessions/${encodeURIComponent(id)}`;
    this.last = 1;
    this.at = 0; // 0: now
    this.build();
  }

  build() {
    this.title = el("h1", "Inside");
    this.slider = el("input", { type: "range", min: "1", max: "1", value: "1", "aria-label": "Entry of the journal", oninput: () => this.pick(Number(this.slider.value)) });
    this.words = el("output.moment");
    this.now = el("button.plain", { type: "button", onclick: () => this.pick(0) }, "Now");
    this.tree = el("div.tree-place");
    this.moves = el("ol.moves");
    this.sequence = el("div.sequence-place", { tabindex: "0", role: "region", "aria-label": "Messages of the turn" });
    this.node = el("main.inside",
      el("header.top", el("a.icon-button", { href: `#/s/${this.id}`, "aria-label": "Back to the conversation" }, icon("back")), el("div.top-title", this.title),
        el("a.plain", { href: `#/s/${this.id}/beside` }, "Compare")),
      el("section.time", { "aria-label": "Time" }, iconButton("back", "One entry back", () => this.step(-1)), this.slider,
        iconButton("chevron", "One entry forward", () => this.step(1)), this.words, this.now),
      el("div.inside-body",
        el("section", { "aria-labelledby": "parts-title" }, el("h2", { id: "parts-title" }, "Parts and their states"), this.tree),
        el("section", { "aria-labelledby": "sequence-title" }, el("h2", { id: "sequence-title" }, "Messages of the turn"), this.sequence,
          el("h2", "Last transitions"), this.moves)));
  }

  async open() {
    try {
      const [row, known] = await Promise.all([get(this.path), machines ? { machines } : get("/machines")]);
      machines = known.machines;
      fill(this.title, `Inside ${row.name || row.id}`);
      document.title = `Inside ${plain(row.name || row.id)} – steersman`;
      this.last = Math.max(1, row.seq);
    } catch (error) {
      complain(error);
      return;
    }
    await this.look();
    this.timer = setInterval(() => this.at === 0 && !document.hidden && this.look(), FRESH);
  }

  close() {
    clearInterval(this.timer);
    clearTimeout(this.resting);
    this.asking?.abort();
  }

  step(by) {
    const from = this.at || this.last;
    this.pick(Math.min(this.last, Math.max(1, from + by)));
  }

  /** Choose a moment; the newest entry is not now: it stays where it is. */
  pick(at) {
    this.at = at;
    this.drawMoment();
    clearTimeout(this.resting);
    this.resting = setTimeout(() => this.look(), PAUSE);
  }

  async look() {
    this.asking?.abort();
    const { signal } = (this.asking = new AbortController());
    const at = this.at;
    try {
      const [dump, sequence] = await Promise.all([get(`${this.path}/inspect${at ? `?at=${at}` : ""}`, { signal }),
        get(`${this.path}/sequence?at=${at}`, { signal }).catch((error) => (error.status === 409 ? "" : Promise.reject(error)))]);
      this.show(dump, sequence);
    } catch (error) {
      if (error.name !== "AbortError") complain(error);
    }
  }

  show(dump, sequence) {
    if (!this.at) this.last = Math.max(this.last, dump.seq);
    const drawn = JSON.stringify([dump.seq, dump.actors, sequence]);
    this.shownTime = dump.updated;
    this.drawMoment();
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    fill(this.tree, el("ul.tree.is-root", partsOf(dump).map(branch)));
    const { parties, messages } = readSequence(sequence);
    fill(this.sequence, messages.length ? drawSequence({ parties, messages }, (seq) => this.pick(seq)) : el("p.muted", "No turn yet."));
    const moves = (dump.transitions || []).slice(-12).reverse();
    fill(this.moves, moves.map((move) => el("li", el("button.entry-link", { type: "button", onclick: () => this.pick(move.seq), "aria-label": `Go to entry ${move.seq}` }, String(move.seq)),
      el("span", `${move.what}: `, chip(move.from || "none", move.from || "new"), " → ", chip(move.to)), el("span.muted", move.cause))));
  }

  drawMoment() {
    const at = this.at || this.last;
    this.slider.max = String(this.last);
    this.slider.value = String(at);
    this.slider.setAttribute("aria-valuetext", this.at ? `entry ${at} of ${this.last}` : "now");
    const time = this.shownTime ? new Date(this.shownTime * 1000).toLocaleTimeString() : "";
    this.words.textContent = this.at ? `entry ${at} of ${this.last} · ${time}` : `now · entry ${this.last}`;
    this.now.disabled = this.at === 0;
  }
}
