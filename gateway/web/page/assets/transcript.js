// The conversation: events of docs/events.md become entries on the page, new ones at its end, old ones above.

import { isOwn, mayApprove } from "./api.js";
import { add, amount, announce, chip, clock, counted, el, fill, iconButton, icon, money, seconds, shown } from "./dom.js";
import { Growing, markdown } from "./markdown.js";

/** What tells the questions of a step, or of an item of it, from those of others. */
const stepKey = (event) => `${event.step} ${event.index ?? ""}`;

const PHRASES = {
  ok: "done", failed: "failed", timed_out: "timed out", killed: "stopped", denied: "denied", skipped: "skipped",
  unknown: "outcome not known",
};

/** The arguments of a call, each whole and with everything visible that acts or hides. */
export function argumentsOf(given) {
  const list = el("dl.arguments");
  for (const [name, value] of Object.entries(given)) {
    const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
    const pre = el("pre", { tabindex: "0", role: "region" });
    pre.setAttribute("aria-label", "argument");
    pre.append(shown(text, true));
    list.append(el("dt", shown(name, true)), el("dd", pre));
  }
  return Object.keys(given).length ? list : el("p.muted", "no arguments");
}

/** The argument that says most, for one line. */
function gist(given) {
  const values = Object.values(given || {}).filter((value) => value !== null && value !== "");
  const first = values.find((value) => typeof value === "string") ?? values[0];
  if (first === undefined) return "";
  const text = typeof first === "string" ? first : JSON.stringify(first);
  return text.replace(/\s+/g, " ").slice(0, 200);
}

/** One tool call. What it holds is built when a person opens it. */
class Call {
  constructor(event) {
    this.event = event;
    this.ended = null;
    this.output = "";
    this.summary = el("summary");
    this.body = el("div.tool-body");
    this.node = el("details.entry.tool", this.summary, this.body);
    this.node.addEventListener("toggle", () => this.node.open && this.build());
    this.draw();
  }

  begin(event) {
    this.event = event;
    this.draw();
  }

  end(event) {
    this.ended = event;
    this.draw();
  }

  /** Its program died while it ran. */
  lose() {
    if (!this.ended) this.end({ status: "unknown", output: this.output });
  }

  show(output) {
    this.output = output;
    this.node.open ||= !this.wasClosed;
    this.build();
  }

  draw() {
    const state = this.ended ? this.ended.status : "running";
    const facts = [];
    if (this.ended) {
      if (this.ended.exit_code) facts.push(`exit ${this.ended.exit_code}`);
      if (state !== "ok") facts.push(PHRASES[state] || state);
      const lines = this.ended.lines - (this.event.tool === "shell"); // without the one with the exit code
      if (state === "ok" && lines > 1) facts.push(counted(lines, "line"));
    }
    fill(this.summary, el(`span.dot.is-${state.replace(/[^a-z_]/g, "")}`, { role: "img", "aria-label": PHRASES[state] || state }),
      el("b", this.event.tool), el("code", gist(this.event.arguments)), el("span.facts", facts.join(", ")), icon("chevron"));
    if (this.ended && this.output && this.node.open) this.node.open = false;
    if (this.node.open) this.build();
  }

  build() {
    const output = this.ended ? this.ended.output : this.output;
    fill(this.body, this.event.arguments && argumentsOf(this.event.arguments),
      this.ended?.reason && el("p.muted", this.ended.reason),
      output && el("pre.output", { tabindex: "0", role: "region", "aria-label": "Output" }, output));
  }
}

/**
 * Takes events and shows them. `listener` hears what else is to be known: `onqueue`, `onquestion`,
 * `onanswered`, `onturn`, `ongoal`, `onchild`, `onprogress`, `onrun`, `onwhy`, `onrevert`, `onmine`.
 */
export class Transcript {
  constructor(place, listener) {
    this.place = place;
    this.listener = listener;
    this.items = new Map();
    this.bubbles = new Map(); // of messages whose text is not known yet
    this.calls = new Map();
    this.closed = new Set(); // questions that were answered
    this.asked = new Map();
    this.live = null; // the answer that grows
    this.thought = null;
    this.speaker = "";
    this.isOld = false;
    this.isAbove = false; // whether the events of an older page are shown above others
    this.wasCutOff = false; // by a crash: what is older and has no end will have none
    this.hasGap = false; // whether pieces of the answer that grows may be missing
  }

  /** Show the events of one page of the journal above everything. */
  prepend(events) {
    const kept = [this.place, this.live, this.thought, this.speaker];
    const above = document.createDocumentFragment();
    const asked = this.asked;
    [this.place, this.live, this.thought, this.speaker, this.isOld] = [above, null, null, "", true];
    [this.asked, this.isAbove] = [new Map(), true];
    for (const event of events) this.take(event);
    [this.place, this.live, this.thought, this.speaker] = kept;
    [this.isOld, this.isAbove] = [false, false];
    this.asked = new Map([...this.asked, ...asked]);
    this.place.prepend(above);
  }

  /** Show an event, and tell the listener what it means for the rest of the page. */
  take(event) {
    const show = this[`on_${event.type}`];
    if (!show) return;
    try {
      show.call(this, event);
    } catch (error) {
      console.error(error);
      this.note(event, `This cannot be drawn (${event.type}): ${event.text ?? ""}`, ".is-bad");
    }
  }

  /** Put nodes at the end; above an answer that grows, which stays the last until it is whole. */
  append(...nodes) {
    const { live } = this;
    if (live) (live.label || live.node).before(...nodes);
    else this.place.append(...nodes);
    return nodes[0];
  }

  /** Somebody else than the agent speaks: it is named again before what it says next. */
  breakIn() {
    if (!this.live) this.speaker = "";
  }

  tell(name, ...values) {
    if (!this.isOld) this.listener[name]?.(...values);
  }

  note(event, words, kind = "") {
    this.breakIn();
    return this.append(el(`p.entry.note${kind}`, el("span", words), event.time && el("time", { datetime: event.time }, clock(event.time))));
  }

  // Messages of people -----------------------------------------------------------------------------

  on_accepted(event) {
    const isStop = event.as === "interrupt";
    if (event.text) this.items.set(event.id, { ...this.items.get(event.id), text: event.text, user: event.user || "", number: event.number, isStop });
    if (isStop && event.number === null) this.said(event, event, "stop"); // a numbered one is shown where its turn begins
    if (event.as === "side_talk") this.said(event, event, "aside");
    this.tell("onmine", event);
  }

  said(event, item, tag = "") {
    this.breakIn();
    const text = el("div.words");
    const head = el("header", el("b", item?.user || "user"), tag && el("span.tag", tag), el("time", { datetime: event.time }, clock(event.time)),
      event.id || event.item ? iconButton("why", `Why: ${(item?.text || "").slice(0, 40)}`, () => this.listener.onwhy(event.item || event.id)) : null);
    const bubble = this.append(el(`article.entry.said${tag ? `.is-${tag}` : ""}`, { "aria-label": `Message from ${item?.user || "a person"}` }, head, text));
    if (item) text.append(shown(item.text));
    return { bubble, head, text };
  }

  on_queue(event) {
    for (const item of event.items || event.changed) {
      this.items.set(item.id, { ...this.items.get(item.id), ...item });
      const waiting = this.bubbles.get(item.id);
      if (waiting) {
        this.bubbles.delete(item.id);
        this.name(waiting, item);
      }
    }
    this.tell("onqueue", event);
  }

  name({ bubble, head, text }, item) {
    fill(text, item.text);
    head.querySelector("b").replaceChildren(shown(item.user || "user"));
    bubble.setAttribute("aria-label", `Message from ${item.user || "a person"}`);
    if (item.goal) {
      bubble.classList.add("is-goal");
      head.querySelector("b").textContent = "goal";
    }
  }

  on_turn_started(event) {
    if (event.seq === null) return; // how it is for one who attaches: the journal has told it
    this.endLive();
    const item = this.items.get(event.item);
    const made = this.said({ ...event, id: event.item }, item, item?.isStop ? "interrupt" : "");
    if (item) this.name(made, item);
    else this.bubbles.set(event.item, made);
    this.tell("onturn", event.turn, true);
  }

  on_steered(event) {
    const item = { text: event.text, user: this.items.get(event.id)?.user || "" };
    this.said(event, item, "steer");
  }

  on_requeued(event) {
    this.note(event, `#${event.number} waits again: ${event.why}`);
  }

  on_rejected(event) {
    this.tell("onmine", event);
  }

  // The agent --------------------------------------------------------------------------------------

  /** Name the agent where another spoke before; return the line of it. */
  speak(event) {
    if (this.speaker === event.turn) return null;
    this.speaker = event.turn;
    return this.append(el("p.entry.speaker", "agent"));
  }

  on_text(event) {
    if (event.so_far) {
      this.drop(); // it is all of the answer
      this.hasGap = false;
    } else if (this.live && this.live.turn !== event.turn) this.endLive();
    if (!this.live) {
      const label = this.speak(event);
      const words = el("div.words");
      const node = this.append(el("article.entry.answer.is-live", { "aria-label": "Answer", "aria-busy": "true" }, words));
      this.live = { turn: event.turn, label, node, words, growing: new Growing(words) };
    }
    if (this.hasGap) this.live.growing.grow("… ");
    this.hasGap = false;
    this.live.growing.grow(event.delta);
    this.thought = null;
  }

  on_answer(event) {
    if (!this.isOld) this.hasGap = false;
    let node;
    if (this.live && this.live.turn === event.turn) {
      node = this.live.node;
      this.live = null;
    } else {
      this.endLive();
      this.speak(event);
      node = this.append(el("article.entry.answer", { "aria-label": "Answer" }));
    }
    node.classList.remove("is-live");
    node.removeAttribute("aria-busy");
    fill(node, el("div.words", markdown(event.text)));
    if (!this.isOld) this.listener.onanswer?.(event);
    this.thought = null;
  }

  /** The answer that grew gets no more: it stays as far as it came. */
  endLive() {
    if (!this.live) return;
    this.live.growing.draw();
    this.live.node.classList.remove("is-live");
    this.live.node.removeAttribute("aria-busy");
    this.live = null;
  }

  /** The connection was lost: pieces of a growing answer may be missing until it is whole. */
  interrupt() {
    this.hasGap = true;
  }

  /** An answer that nobody will finish is none: the journal does not have it. */
  drop() {
    this.live?.node.remove();
    this.live = null;
  }

  on_thinking(event) {
    if (!this.thought) {
      this.speak(event);
      const words = el("div.words");
      this.thought = { words, node: this.append(el("details.entry.thinking", el("summary", "Thinking", icon("chevron")), words)) };
    }
    this.thought.words.append(shown(event.delta));
  }

  on_tool_started(event) {
    const known = this.calls.get(event.call);
    if (known) {
      known.begin(event); // asked about before, or its end is on a newer page
      return;
    }
    this.makeCall(event);
  }

  makeCall(event) {
    this.endLive();
    this.speak(event);
    const call = new Call(event);
    this.calls.set(event.call, call);
    if (this.isAbove && this.wasCutOff) call.lose();
    this.append(call.node);
    return call;
  }

  on_output(event) {
    this.calls.get(event.call)?.show(event.text);
  }

  on_tool_ended(event) {
    (this.calls.get(event.call) || this.makeCall(event)).end(event);
  }

  on_progress(event) {
    this.tell("onprogress", event);
  }

  // Questions --------------------------------------------------------------------------------------

  on_question(event) {
    const what = event.kind === "ask" ? event.arguments.text : event.tool;
    const state = chip("asking", "asks");
    state.dataset.step = event.kind === "ask" ? stepKey(event) : "";
    const row = el("p.entry.asked", state, el("span", event.kind === "ask" ? what : ["May ", el("b", what), " run?"]));
    this.append(row);
    this.asked.set(event.id, state);
    if (this.closed.has(event.id)) state.replaceWith(chip("done", "closed"));
    else if (this.isAbove && event.kind === "ask" && !this.listener.isOpen?.(event.id)) this.closeAsked(event.id, "closed");
    else this.listener.onquestion?.(event);
  }

  /** What a step asked is over with the step, or with its item: no event names the question. */
  closeStep(event) {
    for (const [id, state] of [...this.asked]) {
      if (state.dataset.step === stepKey(event)) this.closeAsked(id, event.state === "done" ? "answered" : "closed");
    }
  }

  /** Nothing asks any more: the turn is over. */
  closeAll() {
    for (const id of [...this.asked.keys()]) this.closeAsked(id, "closed");
  }

  closeAsked(id, word) {
    this.asked.get(id).replaceWith(chip("done", word));
    this.asked.delete(id);
    this.listener.onanswered?.(id, "");
  }

  on_answered(event) {
    this.closed.add(event.id);
    const words = { allow: "allowed", always: "always allowed", deny: "denied", withdrawn: "withdrawn", change: "let run, changed", answer: "answered in its place" };
    const state = this.asked.get(event.id);
    if (state) {
      state.replaceWith(chip(event.choice === "deny" ? "denied" : "done", words[event.choice] || event.choice));
      this.asked.delete(event.id);
    }
    this.listener.onanswered?.(event.id, words[event.choice] || event.choice);
  }

  // Turns ------------------------------------------------------------------------------------------

  on_interrupting(event) {
    this.note(event, `Stopping (${event.cause.replace(/_/g, " ")})…`);
  }

  on_interrupted() {}

  on_turn_ended(event) {
    this.endLive();
    this.closeAll();
    this.speaker = "";
    const { usage, facts: did, turn } = event;
    const facts = [seconds(usage.seconds), `${amount(usage.input + usage.output)} tokens`];
    if (usage.cost) facts.push(`cost ${money(usage.cost)}`);
    if (did?.text) facts.unshift(did.text);
    if (event.resumable) facts.push(`/queue resume goes on with #${event.resumable}`);
    const status = event.status === "completed" ? null : chip(event.status);
    const isCut = event.status !== "completed" && [...this.calls.values()].some((call) => call.event.turn === turn);
    const mayHaveChanged = isCut || (did && (did.changed.length > 0 || !did.all));
    const undo = mayHaveChanged && this.reverting(turn);
    this.append(el("footer.entry.turn-ended", status, event.reason && el("span.reason", event.reason), el("span", facts.join(" · ")), undo));
    this.tell("onturn", event.turn, false, event.status);
  }

  /** The button that takes the files of a turn back, where this person may. */
  reverting(turn) {
    const may = mayApprove() || this.listener.maySpeak;
    return may && el("button.quiet", { type: "button", onclick: () => this.listener.onrevert(turn) }, "Revert files…");
  }

  on_stopped(event) {
    const parts = [event.killed.length && `${counted(event.killed.length, "process").replace("processs", "processes")} ended`,
      event.survivors.length && `${event.survivors.length} still alive!`].filter(Boolean);
    this.note(event, `Stopped${parts.length ? `: ${parts.join(", ")}` : ""}`);
  }

  // The session ------------------------------------------------------------------------------------

  on_session_started(event) {
    if (event.seq === null) return;
    this.drop();
    this.note(event, event.resumed ? "The session was resumed" : `The session began in ${event.folder}`);
    this.tell("onlife", "open");
  }

  on_session_suspended(event) {
    this.note(event, "The session was left; everything is kept");
    this.tell("onlife", "no");
  }

  on_session_finalized(event) {
    this.note(event, `The session has ended (${event.cause})`);
    this.tell("onlife", "finalized");
  }

  on_recovered(event) {
    this.drop();
    this.closeAll();
    this.wasCutOff = true;
    const lost = [...this.calls.values()].filter((call) => !call.ended);
    for (const call of lost) call.lose();
    this.note(event, [`${event.cause === "crash" ? "Cut off by a crash" : "Left before"}: ${counted(event.items.length, "message")} kept; nothing runs until you resume it`,
      event.unknown.map(({ tool, arguments: given }) => [el("br"), "Its outcome is not known: ", el("b", tool), " ", el("code", gist(given))]),
      lost.length > 0 && [" ", this.reverting(lost.at(-1).event.turn)]], ".is-warn");
    this.tell("onturn", "", false, "interrupted");
  }

  on_saved_queues(event) {
    for (const saved of event.saved)
      this.note(event, `Session ${saved.session} left ${counted(saved.items.length, "message")} here: /queue restore lists, /queue resume continues, /queue discard deletes`, ".is-warn");
  }

  on_notice(event) {
    if (!event.client_id) this.note(event, event.text);
  }

  on_error(event) {
    this.note(event, [el("b", event.code.replace(/_/g, " ")), ` ${event.text}`, event.hint && el("span.hint", ` ${event.hint}`)], ".is-bad");
  }

  on_result(event) {
    if (!this.listener.isTyped?.(event.client_id)) {
      if (event.news && !isOwn(event.client_id)) this.note(event, `Elsewhere: ${event.news}`); // a button shows what it did
      return;
    }
    this.breakIn();
    this.append(el(`article.entry.result${event.ok ? "" : ".is-bad"}`, { "aria-label": `Result of /${event.name}` },
      el("header", `/${event.name}`), el("pre", { tabindex: "0", role: "region", "aria-label": "Result" }, event.text)));
    this.tell("onmine", event);
  }

  on_compacted(event) {
    this.note(event, event.summary === null ? `Not summed up: ${event.reason}` : `Older turns were summed up: ${amount(event.before)} tokens became ${amount(event.after)}`);
  }

  on_reverted(event) {
    const isUndo = event.scope === "undo";
    if (!event.restored.length && !event.kept.length) return void this.note(event, isUndo ? "There is no revert to undo." : "There is nothing to revert.");
    const title = event.restored.length ? (isUndo ? "Revert undone" : "Files reverted") : "Nothing was reverted";
    const kept = event.kept.map((path) => el("li", el("code", path), ` ${event.why[path] || ""}`));
    const undo = isUndo || this.isOld || !event.restored.length ? null : el("button.quiet", { type: "button", onclick: () => this.listener.onundo?.() }, "Undo");
    this.append(el("article.entry.card", el("header", el("b", title), undo),
      el("ul", event.restored.map((path) => el("li", el("code", path)))),
      kept.length > 0 && [el("p.muted", "left as they are:"), el("ul", kept)],
      event.shared?.length > 0 && !isUndo && el("p.muted", `Changed while a command ran, so counted as the agent's: ${event.shared.join(", ")}`),
      event.notes.map((note) => el("p.muted", `Not restored: ${note}`)),
      event.original && el("p.muted", "Original state restored.")));
  }

  // Goals, subagents, workflows --------------------------------------------------------------------

  on_goal(event) {
    this.tell("ongoal", event);
  }

  on_verdict(event) {
    this.note(event, ["Goal judged ", chip(event.verdict), ` ${event.reason}`]);
    this.tell("onverdict", event);
  }

  on_child_started(event) {
    this.tell("onchild", event);
    if (event.seq === null) return;
    const state = chip("working", event.resumed ? "goes on" : event.waiting ? "waits" : "began");
    this.append(el("article.entry.card.is-child", el("header", state, el("b", event.name),
      event.id && el("a", { href: `#/s/${event.id}` }, "open")), el("p", event.task)));
  }

  on_child_ended(event) {
    this.tell("onchild", event);
    this.note(event, ["Subagent ", el("b", event.name), ` ${event.status}`, event.reason && `: ${event.reason}`]);
  }

  on_side_talk_ended(event) {
    this.append(el("article.entry.answer.is-aside", { "aria-label": "Answer to the aside" }, el("header", "aside"), el("div.words", markdown(event.text))));
  }

  on_run_started(event) {
    this.note(event, `Workflow ${event.workflow} ${event.resumed ? "goes on" : "began"}`);
    this.tell("onrun", "");
  }

  on_step(event) {
    if (!["running", "pending"].includes(event.state)) this.closeStep(event);
    if (event.index !== undefined) return;
    const counts = event.total ? ` ${event.done || 0}/${event.total}` : "";
    this.append(el("p.entry.asked", chip(event.state), el("span", el("b", event.step), counts, event.reason && ` ${event.reason}`)));
  }

  on_run_ended(event) {
    this.tell("onrun", event.status);
    this.note(event, `Workflow ${event.status}${event.reason ? `: ${event.reason}` : ""}`);
    if (event.output) this.append(el("article.entry.answer", { "aria-label": "Output" }, el("div.words", markdown(event.output))));
  }
}
