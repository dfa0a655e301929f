// What is known of a session beside its conversation: its goal, its budget, its subagents.

import { command, get, maySpeak } from "./api.js";
import { amount, chip, el, fill, iconButton, money, seconds } from "./dom.js";
import { complain } from "./queue.js";

const OVER = ["achieved", "impossible", "cleared"];

function meter(label, used, most, word = amount) {
  if (!most) return null;
  const bar = el("progress", { value: String(Math.min(used, most)), max: String(most), "aria-label": label });
  return el("div.meter", el("span", label), bar, el("span.meter-count", `${word(used)} of ${word(most)}`));
}

export class GoalView {
  constructor(session) {
    this.session = session;
    this.body = el("div.goal-body");
    this.node = el("section", { "aria-labelledby": "goal-title" }, el("header.panel-head", el("h2", { id: "goal-title" }, "Goal")), this.body);
    this.goal = null;
    this.draw();
  }

  show(event) {
    this.goal = { ...(this.goal?.id === event.id ? this.goal : {}), ...event };
    this.draw();
  }

  judged(event) {
    if (this.goal) this.goal.verdict = event;
    this.draw();
  }

  async run(name, given) {
    try {
      await command(this.session, name, given);
    } catch (error) {
      complain(error);
    }
  }

  draw() {
    const { goal } = this;
    if (!goal || OVER.includes(goal.state)) {
      fill(this.body, goal && el("p", chip(goal.state), " ", goal.text), maySpeak() ? this.form() : el("p.muted", "No goal is set."));
      return;
    }
    const minutes = goal.max_minutes && meter("minutes", goal.minutes_used || 0, goal.max_minutes, (count) => String(Math.round(count)));
    const isPaused = goal.state === "paused";
    fill(this.body, el("p.goal-text", goal.text), el("p", chip(goal.state), goal.reason && ` ${goal.reason.replace(/_/g, " ")}`),
      goal.detail && el("p.muted", goal.detail), goal.waiting_for && el("p.muted", `waits for ${goal.waiting_for}`),
      meter("turns", goal.turns_used, goal.max_turns, String), meter("tokens", goal.tokens_used ?? goal.tokens, goal.max_tokens), minutes,
      goal.verdict && el("p.muted", "last judged ", chip(goal.verdict.verdict), ` ${goal.verdict.reason}`),
      goal.next?.length ? el("p.muted", `then: ${goal.next.map((other) => other.text).join("; ")}`) : null,
      maySpeak() && el("div.row",
        isPaused ? el("button.accent", { type: "button", onclick: () => this.run("goal resume") }, "Resume")
          : el("button.plain", { type: "button", onclick: () => this.run("goal pause") }, "Pause"),
        el("button.quiet", { type: "button", onclick: () => this.run("goal clear") }, "Drop the goal")));
  }

  form() {
    const input = el("input", { type: "text", "aria-label": "What is to be reached", placeholder: "What is to be reached" });
    const turns = el("input.turns", { type: "number", min: "1", step: "1", inputmode: "numeric", "aria-label": "Turns at most", placeholder: "turns" });
    return el("form", { onsubmit: (event) => {
      event.preventDefault();
      const most = turns.value ? { turns: Number(turns.value) } : {};
      if (input.value.trim()) this.run("goal", { text: input.value.trim(), ...most });
    } }, input, turns, el("button.plain", { type: "submit" }, "Set"));
  }
}

export class ChildrenView {
  constructor(session) {
    this.session = session;
    this.children = new Map();
    this.list = el("ul.children");
    this.node = el("section", { "aria-labelledby": "children-title" },
      el("header.panel-head", el("h2", { id: "children-title" }, "Subagents")), this.list);
    this.draw();
  }

  /** Show those of a dump of the session, the newest ten; `seq`: the entry up to which it tells. */
  load(children, seq, isOpen) {
    for (const child of Object.values(children).slice(-10)) {
      if (this.children.get(child.name)?.seq > seq) continue; // an event has told more
      this.children.set(child.name, { name: child.name, task: child.task, id: child.session, state: child.state });
    }
    if (!isOpen) this.lose();
    this.draw();
  }

  /** Nobody has the session open: what worked was cut off. */
  lose() {
    const lost = [...this.children.values()].filter((child) => ["working", "waiting", "stopping"].includes(child.state));
    for (const child of lost) child.state = "interrupted";
    if (lost.length) this.draw();
  }

  show(event) {
    const known = this.children.get(event.name) || { name: event.name };
    if (event.type === "child_started") {
      Object.assign(known, { task: event.task, id: event.id || known.id, state: event.waiting ? "waiting" : "working" });
    } else known.state = event.status;
    known.seq = event.seq;
    this.children.set(event.name, known);
    this.draw();
  }

  draw() {
    this.node.hidden = this.children.size === 0;
    fill(this.list, [...this.children.values()].map((child) => el("li.child",
      el("p", chip(child.state), el("b", child.name), child.id && el("a", { href: `#/s/${child.id}`, "aria-label": `Open ${child.name}` }, "open"),
        maySpeak() && ["working", "waiting"].includes(child.state) && iconButton("stop", `Stop ${child.name}`, () => this.stop(child.name))),
      el("p.muted", child.task))));
  }

  get working() {
    return [...this.children.values()].filter((child) => child.id && ["working", "waiting", "active", "idle", "busy"].includes(child.state));
  }

  async stop(name) {
    try {
      await command(this.session, "agents stop", { name });
    } catch (error) {
      complain(error);
    }
  }
}

/** What the session has used. */
export class UsageView {
  constructor() {
    this.body = el("dl.facts");
    this.node = el("section", { "aria-labelledby": "usage-title" }, el("header.panel-head", el("h2", { id: "usage-title" }, "Session")), this.body);
    this.node.hidden = true;
  }

  show(dump) {
    const { usage } = dump;
    const rows = [["folder", el("code", dump.folder)], ["agent", dump.agent], ["model", dump.model],
      ["used", `${amount(usage.input)} tokens in, ${amount(usage.output)} out`], ["cost", usage.cost ? money(usage.cost) : ""],
      ["in turns", seconds(dump.seconds || 0)]];
    this.node.hidden = false;
    fill(this.body, rows.filter(([, value]) => value).map(([name, value]) => [el("dt", name), el("dd", value)]));
  }
}

const LOOK = 2500; // milliseconds between two looks at the subagents that work

/**
 * Finds what working subagents ask: their events are not among those of the session.
 * `listener`: `onquestion(event, name)` and `onanswered(id, how)`.
 */
export class ChildQuestions {
  constructor(children, listener) {
    this.children = children;
    this.listener = listener;
    this.seen = new Map(); // the newest entry that was read, by session
    this.open = new Map(); // open questions: id to session
    this.timer = setInterval(() => document.hidden || this.look().catch(() => {}), LOOK);
  }

  async look() {
    if (this.isLooking) return;
    this.isLooking = true;
    try {
      const { working } = this.children;
      for (const child of working) await this.read(child);
      const there = new Set(working.map((child) => child.id));
      for (const [id, session] of [...this.open]) if (!there.has(session)) this.end(id);
    } finally {
      this.isLooking = false;
    }
  }

  async read({ id, name }) {
    const path = `/sessions/${encodeURIComponent(id)}`;
    const { seq } = await get(path);
    const after = this.seen.get(id) || 0;
    if (seq <= after) return;
    const { events } = await get(`${path}/events?after=${after}&upto=${seq}`);
    this.seen.set(id, Math.min(seq, after + 2000));
    for (const event of events) {
      if (event.type === "question") this.open.set(event.id, id);
      if (event.type === "answered") this.end(event.id);
    }
    for (const event of events) {
      if (event.type === "question" && this.open.has(event.id)) this.listener.onquestion({ ...event, asker: name });
    }
  }

  end(id) {
    this.open.delete(id);
    this.listener.onanswered(id, "");
  }

  close() {
    clearInterval(this.timer);
  }
}
