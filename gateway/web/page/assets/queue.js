// The queue: what runs and what waits, to be edited, moved by drag or by keys, steered and dropped.

import { Refused, command, maySpeak, newKey, send } from "./api.js";
import { announce, chip, el, fill, icon, iconButton, set, toast } from "./dom.js";

const HOLD = 10_000; // milliseconds after which it is said again that a message is being edited
const EDITOR = newKey("editor");

const SHOWN = 100; // messages that have a row; of the others only their number is shown

const isWaiting = (item) => item.state === "pending";

/** Tell a person why something was refused. */
export function complain(error) {
  if (!(error instanceof Refused)) throw error;
  const text = error.message + (error.hint ? ` – ${error.hint}` : "");
  toast(text, true);
}

export class QueueView {
  /** `onleft(text, number)`: a message began while its text was edited here. */
  constructor(session, onwhy, onleft) {
    this.session = session;
    this.onwhy = onwhy;
    this.onleft = onleft;
    this.rows = new Map();
    [this.items, this.waiting, this.places] = [[], [], new Map()];
    this.state = "open";
    this.isKnown = false;
    this.isMissed = false; // a change came while the whole was not known
    this.drag = null;
    this.known = { items: [], state: "open", children: [] }; // as the server has it
    this.moves = Promise.resolve(); // the moves that are under way, one after another
    this.moving = 0;
    this.isLate = false; // what is known has changed while a message is moved here
    this.heading = el("h2", { id: "queue-title" }, "Queue");
    this.list = el("ol.queue", { "aria-labelledby": "queue-title" });
    this.banner = el("div.held");
    this.empty = el("p.muted", "Nothing waits.");
    this.more = el("p.muted");
    this.banner.hidden = this.more.hidden = true;
    this.node = el("section.queue-panel", { "aria-labelledby": "queue-title" }, el("header.panel-head", this.heading), this.banner, this.list, this.more, this.empty);
  }

  get isHeld() {
    return this.state === "held" || this.items.some((item) => item.held || (item.state === "interrupted" && !item.next));
  }

  /** Take in a whole queue, or the change of the one that is known; false if that is not enough to know it. */
  take(queue) {
    let { items } = queue;
    if (!items) {
      const gone = new Set([...queue.removed, ...queue.changed.map((item) => item.id)]);
      items = this.known.items.filter((item) => !gone.has(item.id));
      for (const item of queue.changed) items.splice(item.place - 1, 0, item);
    }
    this.isKnown = Boolean(queue.items) || (this.isKnown && items.length === queue.count);
    this.isMissed ||= !this.isKnown;
    const children = queue.items ? queue.children || [] : this.known.children;
    if (this.isKnown) this.show((this.known = { state: queue.state, items, children }));
    return this.isKnown;
  }

  path(number) {
    return `/sessions/${encodeURIComponent(this.session)}/queue/${number}`;
  }

  /** Show a queue. Rows that stay keep their element, so that nothing loses the focus. */
  show(queue) {
    if (queue === this.known) {
      this.isLate = Boolean(this.drag || this.moving);
      if (this.isLate) return;
    }
    const focused = this.list.contains(document.activeElement) ? document.activeElement : null;
    [this.items, this.state] = [queue.items, queue.state];
    this.waiting = this.items.filter(isWaiting);
    this.places = new Map(this.waiting.map((item, at) => [item.id, at]));
    const gone = new Set(this.rows.keys());
    this.items.slice(0, SHOWN).forEach((item, at) => {
      gone.delete(item.id);
      let row = this.rows.get(item.id);
      if (!row) this.rows.set(item.id, (row = this.makeRow(item)));
      this.drawRow(row, item);
      if (this.list.children[at] !== row.node) this.list.insertBefore(row.node, this.list.children[at] || null);
    });
    for (const id of gone) {
      const { node, leave } = this.rows.get(id);
      leave?.();
      if (focused && node.contains(focused)) this.focusNear(node);
      node.remove();
      this.rows.delete(id);
    }
    if (focused?.isConnected && document.activeElement !== focused) focused.focus();
    const held = this.waiting.filter((item) => item.held).length;
    const counts = [[this.waiting.length - held, "waiting"], [held, "held"]].filter(([count]) => count);
    fill(this.heading, "Queue", counts.length > 0 && el("span.count", counts.map((pair) => pair.join(" ")).join(", ")));
    this.empty.hidden = this.items.length > 0 || this.known.children.length > 0;
    this.list.hidden = this.items.length === 0;
    const { isHeld } = this;
    const more = this.items.length - SHOWN;
    this.more.hidden = more <= 0;
    this.more.textContent = more > 0 ? `and ${more} more` : "";
    const { children } = this.known;
    const waits = isHeld ? "Held: nothing runs until you resume it." : children.length > 0 && `Stopped: ${children.join(", ")}.`;
    fill(this.banner, waits && [el("span", waits),
      maySpeak() && el("button.accent", { type: "button", onclick: () => this.resume() }, "Resume")]);
    this.banner.hidden = !waits;
  }

  focusNear(node) {
    const near = node.nextElementSibling || node.previousElementSibling;
    const button = near?.querySelector("button");
    if (button) button.focus();
    else {
      this.heading.tabIndex = -1;
      this.heading.focus();
    }
  }

  makeRow(item) {
    const row = { item, isEditing: false, isDrawn: "" };
    row.grip = el("button.grip", { type: "button" }, icon("grip"));
    row.text = el("p.item-text");
    row.about = el("p.item-about");
    row.tools = el("div.item-tools");
    row.node = el("li.item", row.grip, el("div.item-body", row.about, row.text, row.tools));
    row.grip.addEventListener("keydown", (event) => {
      const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
      if (!step) return;
      event.preventDefault();
      this.move(row.item, step);
    });
    row.grip.addEventListener("pointerdown", (event) => this.beginDrag(event, row));
    return row;
  }

  drawRow(row, item) {
    row.item = item;
    if (row.isEditing && !isWaiting(item)) row.leave();
    const at = this.places.get(item.id) ?? -1;
    const drawn = JSON.stringify([item, at, this.waiting.length]);
    if (row.isEditing || row.isDrawn === drawn) return;
    row.isDrawn = drawn;
    const isMovable = isWaiting(item) && maySpeak();
    row.node.className = `item is-${item.state}`;
    row.grip.hidden = !isMovable;
    set(row.grip, { "aria-label": `Move #${item.number}: ${item.text.slice(0, 60)}. Place ${at + 1} of ${this.waiting.length}; use the arrow keys` });
    fill(row.about, el("span.number", `#${item.number}`), item.user && el("span", item.user),
      !isWaiting(item) && chip(item.state), item.turn && !item.held && chip("steered", "steers soon"), item.held && chip("held"), item.next && chip("next", "runs next"),
      item.edited && chip("held", "being edited"), item.children?.length > 0 && el("span", `for ${item.children.join(", ")}`),
      item.progress && el("span", `${item.progress.done}/${item.progress.total} ${item.progress.unit}`));
    fill(row.text, item.text, item.answer && item.answer !== item.text && el("span.item-answer", item.answer));
    const focused = row.tools.contains(document.activeElement) ? document.activeElement.dataset.does : "";
    fill(row.tools, this.tools(row, item, at));
    if (focused) (row.tools.querySelector(`[data-does=${focused}]:not([disabled])`) || row.tools.querySelector("button:not([disabled])"))?.focus();
  }

  tools(row, item, at) {
    const button = (name, label, does, word, more = {}) =>
      iconButton(name, `${label} #${item.number}`, does, word, { "data-does": label.toLowerCase(), ...more });
    const why = button("why", "Why", () => this.onwhy(item.id), "");
    if (!maySpeak()) return [why];
    if (item.state === "offered") {
      return [button("check", "Keep", () => this.run("queue keep", item), "Keep"), button("steer", "Steer", () => this.run("queue steer", item), "Steer"),
        button("close", "Drop", () => this.drop(item), ""), why];
    }
    if (!isWaiting(item)) return item.state === "running" ? [why] : [why, button("close", "Drop", () => this.drop(item), "")];
    return [button("up", "Up", () => this.move(item, -1), "", { disabled: at <= 0 }),
      button("down", "Down", () => this.move(item, 1), "", { disabled: at >= this.waiting.length - 1 }),
      button("edit", "Edit", () => this.edit(row), "", { disabled: Boolean(item.edited) && !row.isMine }),
      button("steer", "Steer", () => this.steer(item), "Steer", { disabled: Boolean(item.edited) }),
      why, button("close", "Drop", () => this.drop(item), "")];
  }

  // What a person does -----------------------------------------------------------------------------

  /** Do something and say so, or say why it failed; return whether it was done. */
  async attempt(doing, said) {
    try {
      await doing();
      if (said) announce(said);
      return true;
    } catch (error) {
      complain(error);
      return false;
    }
  }

  run(name, item) {
    return this.attempt(() => command(this.session, name, { number: item.number }));
  }

  resume() {
    return this.attempt(() => send("POST", `/sessions/${encodeURIComponent(this.session)}/queue/resume`), "The queue runs again");
  }

  steer(item) {
    return this.attempt(() => send("POST", `${this.path(item.number)}/steer`), `#${item.number} steers`);
  }

  drop(item) {
    return this.attempt(() => send("DELETE", this.path(item.number)), `#${item.number} was dropped`);
  }

  move(item, step) {
    return this.place(item, this.places.get(item.id) + step);
  }

  /** Move a message to a place among those that wait, from 0: at once in what is shown, then at the server, one move after another. */
  place(item, at) {
    const waiting = [...this.waiting];
    const from = this.places.get(item.id) ?? -1;
    if (at < 0 || at >= waiting.length || from < 0 || at === from) return;
    waiting.splice(at, 0, ...waiting.splice(from, 1));
    this.show({ state: this.state, items: [...this.items.filter((other) => !isWaiting(other)), ...waiting] });
    this.moving += 1;
    this.moves = this.moves.then(() => this.sendMove(item, at, waiting.length));
  }

  async sendMove(item, at, count) {
    const isDone = await this.attempt(() => send("PATCH", this.path(item.number), { position: at + 1 }), `#${item.number} is now at place ${at + 1} of ${count}`);
    this.moving -= 1;
    if (this.isLate || !isDone) this.show(this.known);
  }

  /** Have the server keep a message from starting while it is edited here, or let it go. */
  hold(item, isHeld) {
    return send(isHeld ? "PUT" : "DELETE", `${this.path(item.number)}/edit`, { editor: EDITOR });
  }

  /** Edit a message at once; where the server does not hold it for that, the text goes to the message field. */
  edit(row) {
    const { item } = row;
    if (row.isEditing) return;
    row.isEditing = row.isMine = true;
    const held = this.hold(item, true).catch((error) => {
      complain(error);
      row.leave?.();
    });
    const holding = setInterval(() => this.hold(item, true).catch(() => {}), HOLD);
    const away = () => this.hold(item, false).catch(() => {});
    addEventListener("pagehide", away);
    const area = el("textarea", { "aria-label": `Text of #${item.number}`, rows: "3" });
    area.value = item.text;
    const done = (isFocus = true) => {
      clearInterval(holding);
      removeEventListener("pagehide", away);
      held.then(away).then(() => (row.isMine = row.isEditing));
      row.leave = null;
      row.isEditing = false;
      row.isDrawn = "";
      row.text.hidden = false;
      area.remove();
      this.drawRow(row, row.item);
      if (isFocus) row.tools.querySelector("[data-does=edit]")?.focus();
    };
    row.leave = () => {
      const text = area.value.trim();
      done(false);
      if (text && text !== item.text) this.onleft(text, item.number);
    };
    const save = async () => {
      const text = area.value.trim();
      if (!text || text === item.text) return done();
      const { leave } = row;
      row.leave = () => done(false); // it may begin before the answer is here: its text is on the way
      try {
        await send("PATCH", this.path(item.number), { text, editor: EDITOR });
        row.item = { ...row.item, text };
        announce(`#${item.number} was changed`);
        if (row.isEditing) done();
      } catch (error) {
        complain(error);
        if (row.isEditing) row.leave = leave;
        else this.onleft(text, item.number);
      }
    };
    area.addEventListener("keydown", (event) => {
      if (event.key === "Escape") {
        event.stopPropagation();
        done();
      }
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        save();
      }
    });
    row.text.hidden = true;
    row.text.after(area);
    fill(row.tools, el("button.accent", { type: "button", onclick: save }, "Save"), el("button.quiet", { type: "button", onclick: () => done() }, "Cancel"));
    area.focus();
  }

  /** Let go of what is edited: the view is left. */
  close() {
    for (const row of this.rows.values()) row.leave?.();
  }

  // Dragging ---------------------------------------------------------------------------------------

  beginDrag(event, row) {
    if (event.button !== 0 || this.drag) return;
    event.preventDefault();
    row.grip.focus();
    const rows = this.waiting.map((item) => this.rows.get(item.id)).filter(Boolean);
    const from = rows.indexOf(row);
    const boxes = rows.map((other) => other.node.getBoundingClientRect());
    this.drag = { row, rows, boxes, from, at: from, start: event.clientY };
    row.grip.setPointerCapture(event.pointerId);
    row.node.classList.add("is-dragged");
    const follow = (moved) => this.followDrag(moved);
    const end = (ended) => {
      row.grip.removeEventListener("pointermove", follow);
      row.grip.removeEventListener("pointerup", end);
      row.grip.removeEventListener("pointercancel", end);
      this.endDrag(ended.type === "pointerup");
    };
    row.grip.addEventListener("pointermove", follow);
    row.grip.addEventListener("pointerup", end);
    row.grip.addEventListener("pointercancel", end);
  }

  followDrag(event) {
    const { row, rows, boxes, from, start } = this.drag;
    const by = event.clientY - start;
    const middle = boxes[from].top + boxes[from].height / 2 + by;
    const at = boxes.filter((box, index) => index !== from && box.top + box.height / 2 < middle).length;
    this.drag.at = at;
    row.node.style.transform = `translateY(${by}px)`;
    rows.forEach((other, index) => {
      if (index === from) return;
      const shift = index > from && index <= at ? -1 : index < from && index >= at ? 1 : 0;
      other.node.style.transform = shift ? `translateY(${shift * (boxes[from].height + 8)}px)` : "";
    });
  }

  endDrag(isDropped) {
    const { row, rows, from, at } = this.drag;
    for (const other of rows) other.node.style.transform = "";
    row.node.classList.remove("is-dragged");
    this.drag = null;
    if (this.isLate) this.show(this.known);
    if (isDropped && at !== from) this.place(row.item, at);
  }
}
