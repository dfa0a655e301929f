// One session: its conversation, the input, and beside them its queue, goal and subagents.

import { Refused, command, get, maySpeak, newKey, send } from "./api.js";
import { announce, chip, dialog, el, fill, icon, iconButton, plain, shown, toast } from "./dom.js";
import { Questions } from "./questions.js";
import { QueueView, complain } from "./queue.js";
import { ChildQuestions, ChildrenView, GoalView, UsageView } from "./state.js";
import { EventStream } from "./stream.js";
import { Transcript } from "./transcript.js";
import { showWhy } from "./inside.js";

const NEAR = 80; // pixels from the end at which the newest stays in view
const WAYS = [["auto", "Auto", "The session decides by its rules"], ["steer", "Steer", "Into the running turn"],
  ["queue", "Queue", "After what runs"], ["interrupt", "Interrupt", "Stop what runs, then this"]];

export const nameOf = (row) => row.name || row.title || row.folder.split("/").filter(Boolean).pop() || row.id;

/** What a workflow's run is that no program has open, and what resumes it: a message does not. */
/** The class and the word of a chip for a run that is over. */
export const endOfRun = (result) => [result === "succeeded" ? "done" : result, result];
const runWords = ({ id, workflow, result }) => [el("span", `A run of the workflow ${workflow}: ${result || "cut off"}.`),
  result !== "succeeded" && el("span", el("code", `steersman run --resume ${id}`), result === "failed" ? " repeats the failed work." : " resumes it.")];

export class SessionView {
  constructor(id) {
    this.id = id;
    this.path = `/sessions/${encodeURIComponent(id)}`;
    this.row = null;
    this.turn = "";
    this.isBusy = false;
    this.isCaughtUp = false;
    this.outbox = new Map(); // messages on their way: key to bubble
    this.typed = new Set(); // keys of what was typed here
    this.way = "auto";
    this.build();
  }

  build() {
    this.title = el("h1", "…");
    this.state = el("span.state");
    this.panelButton = iconButton("panel", "Queue, goal and subagents", () => this.togglePanel(), "", { "aria-expanded": "false", "aria-controls": "panel" });
    this.panelCount = el("span.badge");
    this.panelButton.append(this.panelCount);
    this.inside = el("a.icon-button", { href: `#/s/${this.id}/inside`, title: "Inside: actors, messages, history", "aria-label": "Inside: actors, messages, history" }, icon("inside"));
    this.header = el("header.top", el("a.icon-button.only-narrow", { href: "#/", "aria-label": "All sessions" }, icon("back")),
      el("div.top-title", this.title, this.state), this.inside, this.panelButton);
    this.connection = el("p.connection", { role: "status" });
    this.connection.hidden = true;
    this.progress = el("div.progress");
    this.progress.hidden = true;
    this.more = el("button.quiet.more", { type: "button", onclick: () => this.loadOlder() }, "Earlier messages");
    this.entries = el("div.entries");
    this.pending = el("div.entries.pending");
    this.scroller = el("div.scroller", { tabindex: "0", role: "region", "aria-label": "Conversation" }, el("div.column", this.more, this.entries, this.pending));
    this.latest = el("button.latest", { type: "button", onclick: () => this.toEnd() }, icon("down"), "Newest");
    this.latest.hidden = true;
    this.questions = new Questions(this.id);
    this.strip = el("button.strip", { type: "button", onclick: () => this.togglePanel(true) });
    this.strip.hidden = true;
    this.notOpen = el("div.not-open");
    this.notOpen.hidden = true;
    this.queue = new QueueView(this.id, (message) => this.why(message), (text, number) => this.takeBack(text, number));
    this.goal = new GoalView(this.id);
    this.children = new ChildrenView(this.id);
    this.usage = new UsageView();
    this.panel = el("aside.panel", { id: "panel", "aria-label": "Queue, goal and subagents" },
      el("div.panel-close", iconButton("close", "Close", () => this.togglePanel(false))),
      this.queue.node, this.goal.node, this.children.node, this.usage.node);
    this.dock = el("div.dock", el("div.column", this.latest, this.questions.node, this.strip, this.notOpen, maySpeak() && this.composer()));
    this.node = el("main.session", this.header, el("div.session-body", el("div.talk", this.connection, this.progress, this.scroller, this.dock), this.panel));
    this.transcript = new Transcript(this.entries, this);
    this.staysAtEnd = true;
    this.placed = this.place();
    const keep = new ResizeObserver(() => this.staysAtEnd && this.toEnd());
    for (const part of [this.scroller, this.entries, this.pending]) keep.observe(part);
    this.scroller.addEventListener("scroll", () => this.onscroll(), { passive: true });
    this.node.addEventListener("keydown", (event) => event.key === "Escape" && this.togglePanel(false));
  }

  composer() {
    this.input = el("textarea", { id: "input", rows: "1", "aria-label": "Message", placeholder: "Message, or /command", enterkeyhint: "send" });
    this.input.value = sessionStorage.getItem(`draft-${this.id}`) || "";
    this.sendButton = el("button.send", { type: "submit", "aria-label": "Send", title: "Send" }, icon("send"));
    this.stopButton = el("button.stop", { type: "button", "aria-label": "Stop", title: "Stop what runs, and all that it started", onclick: () => this.stop() }, icon("stop"), el("span", "Stop"));
    this.stopButton.hidden = true;
    const name = `way-${this.id}`;
    this.ways = el("fieldset.ways", el("legend.unseen", "What the message does to the running turn"),
      WAYS.map(([value, word, about]) => el("label", { title: about },
        el("input", { type: "radio", name, value, checked: value === "auto", onchange: () => (this.way = value) }), el("span", word))));
    this.ways.hidden = true;
    const form = el("form.composer", { onsubmit: (event) => {
      event.preventDefault();
      this.submit();
    } }, this.ways, el("div.composer-row", this.input, this.stopButton, this.sendButton));
    this.input.addEventListener("input", () => {
      this.grow();
      sessionStorage.setItem(`draft-${this.id}`, this.input.value);
    });
    this.input.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        this.submit();
      }
    });
    return form;
  }

  grow() {
    this.input.style.height = "auto";
    this.input.style.height = `${Math.min(this.input.scrollHeight, 220)}px`;
  }

  // Opening ----------------------------------------------------------------------------------------

  async open() {
    try {
      this.row = await get(this.path);
    } catch (error) {
      fill(this.title, "No such session");
      for (const part of [this.more, this.dock, this.panel]) part.hidden = true;
      complain(error);
      return;
    }
    this.id = this.row.id;
    fill(this.title, nameOf(this.row));
    document.title = `${plain(nameOf(this.row))} – steersman`;
    this.isBusy = ["running", "waiting"].includes(this.row.state);
    this.stream = new EventStream(this.id, {
      ontake: (event) => this.take(event),
      onstate: (isConnected) => this.showConnection(isConnected),
      ongap: () => this.transcript.interrupt(),
      onlost: () => {},
    });
    if (this.isClosed) return this.stream.close();
    const first = await this.stream.begin(this.row.seq);
    this.transcript.isOld = true;
    for (const event of first) this.transcript.take(event);
    this.transcript.isOld = false;
    this.showMore();
    this.toEnd();
    this.isFirst = true;
    if (this.isBusy) this.transcript.interrupt();
    this.stream.connect();
    this.asking = new ChildQuestions(this.children, this);
    this.drawState();
    if (this.row.parent) this.ofParent();
    await Promise.allSettled([this.askQueue(), this.loadDump()]);
    for (let pages = 0; this.scroller.scrollHeight <= this.scroller.clientHeight && this.stream.oldest > 0 && pages < 5; pages += 1) await this.loadOlder();
    if (this.input) this.grow();
    if (this.input && matchMedia("(pointer: fine)").matches) this.input.focus();
  }

  async loadDump() {
    const dump = await get(`${this.path}/inspect`);
    if (this.isClosed) return;
    this.usage.show(dump);
    const open = Object.values(dump.run?.open || {});
    this.openOfRun = open.filter((attempt) => attempt.asked).map((attempt) => attempt.asked.question);
    this.children.load(dump.children || {}, dump.seq, this.row.open !== "no");
    const goal = dump.goals?.goals?.[dump.goals.current];
    if (goal && !this.goal.goal) this.goal.show({ ...goal, turns_used: goal.turns_total - (goal.base_turns || 0) });
    const turn = dump.turns?.[dump.turn];
    const isLive = this.row.open !== "no";
    if (turn?.state === "paused" && turn.question && isLive) this.questions.ask({ id: turn.question, kind: "permission", tool: "continue", arguments: { model_calls: turn.step - turn.granted } }, true);
    for (const call of Object.values(turn?.calls || {})) {
      const { asked } = call;
      if (call.state === "asking" && asked && isLive) this.questions.ask({ ...asked, id: asked.question, kind: call.tool === "mcp:elicitation" ? "form" : asked.is_hold ? "hold" : "permission", outside: asked.is_outside }, true);
    }
    this.drawState();
  }

  ofParent() {
    fill(this.notOpen, el("span", "A subagent of "), el("a", { href: `#/s/${this.row.parent}` }, "its session"), ".");
    this.notOpen.hidden = false;
    this.node.querySelector(".composer")?.remove();
    this.input = null;
  }

  async loadOlder() {
    if (this.isLoading || this.stream.oldest === 0) return;
    this.isLoading = true;
    try {
      const events = await this.stream.older();
      const { scrollHeight, scrollTop } = this.scroller;
      this.transcript.prepend(events);
      this.scroller.scrollTop = scrollTop + this.scroller.scrollHeight - scrollHeight;
    } catch (error) {
      complain(error);
    }
    this.isLoading = false;
    this.showMore();
  }

  showMore() {
    this.more.hidden = this.stream.oldest === 0;
  }

  /** A message began while its text was edited: the text is kept as a new message. */
  takeBack(text, number) {
    if (!this.input || this.isClosed) return;
    toast(`#${number} is not waiting any more: your text is in the message field`, true);
    this.input.value = [this.input.value, text].filter(Boolean).join("\n");
    this.input.dispatchEvent(new Event("input"));
  }

  close() {
    this.isClosed = true;
    this.queue.close();
    this.asking?.close();
    this.stream?.close();
    clearTimeout(this.retry);
  }

  // Events -----------------------------------------------------------------------------------------

  take(event) {
    this.transcript.take(event);
    if (!this.staysAtEnd && (event.type === "text" || event.type === "answer" || event.type === "turn_started")) this.latest.hidden = false;
  }

  isAtEnd() {
    const { scrollHeight, scrollTop, clientHeight } = this.scroller;
    return scrollHeight - scrollTop - clientHeight < NEAR;
  }

  toEnd() {
    this.latest.hidden = true;
    this.staysAtEnd = true;
    this.scroller.scrollTop = this.scroller.scrollHeight;
    this.placed = this.place();
  }

  place() {
    const { scrollTop, scrollHeight, clientHeight } = this.scroller;
    return { scrollTop, scrollHeight, clientHeight };
  }

  /** A person scrolled, or the layout did: where more room is seen or less is there, the end comes down. */
  onscroll() {
    const [was, now] = [this.placed, this.place()];
    const isByLayout = now.clientHeight > was.clientHeight || now.scrollHeight < was.scrollHeight;
    if (this.isAtEnd()) {
      this.latest.hidden = true;
      this.staysAtEnd = true;
    } else if (now.scrollTop < was.scrollTop && !isByLayout) this.staysAtEnd = false;
    this.placed = now;
    if (this.scroller.scrollTop < 300 && this.stream?.oldest > 0 && this.isFirst) this.loadOlder();
  }

  showConnection(isConnected) {
    this.connection.hidden = isConnected;
    this.node.toggleAttribute("data-follows", isConnected);
    if (!isConnected) {
      this.connection.textContent = "Not connected. Trying again…";
      this.wasLost = true;
      return;
    }
    if (this.wasLost) this.refresh();
    this.wasLost = false;
    this.flush();
  }

  /** After an interruption: who has the session open now? */
  async refresh() {
    try {
      this.row = await get(this.path);
      if (this.row.open === "no") this.onlife("no");
      else this.drawState();
      this.queue.isKnown = false;
      await this.askQueue();
    } catch (error) {
      if (error.status) complain(error);
    }
  }

  onqueue(queue) {
    if (!this.queue.take(queue)) return void (this.transcript.isOld || this.askQueue());
    const { waiting, isHeld } = this.queue;
    this.panelCount.textContent = waiting.length || "";
    const label = "Queue, goal and subagents";
    this.panelButton.setAttribute("aria-label", waiting.length ? `${waiting.length} waiting: ${label}` : label);
    this.strip.hidden = !waiting.length && !isHeld;
    fill(this.strip, isHeld && !waiting.some((item) => !item.held) ? chip("held") : el("b", `${waiting.length} waiting`), el("span", waiting[0] ? waiting[0].text : "resume to go on"), icon("chevron"));
    this.drawState();
  }

  /** Get the whole queue; again, if changes came meanwhile that may not be in it. */
  async askQueue() {
    if (this.isAsking) return;
    this.isAsking = true;
    while (!this.queue.isKnown) {
      this.queue.isMissed = false;
      const queue = await get(`${this.path}/queue`).catch(() => null);
      if (!queue || this.isClosed) break;
      if (!this.queue.isKnown && !this.queue.isMissed) this.onqueue(queue);
    }
    this.isAsking = false;
  }

  onquestion(event) {
    if (this.transcript.isOld && this.row.open === "no") return; // nobody waits for an answer
    this.questions.ask(event, this.transcript.isOld);
    this.drawState();
  }

  /** Whether a step of the run still waits for the answer to a question. */
  isOpen(id) {
    return Boolean(this.openOfRun?.includes(id));
  }

  onanswered(id, how) {
    this.questions.close(id, this.transcript.isOld ? "" : how);
    this.drawState();
  }

  onanswer(event) {
    announce(`Answer: ${event.text.slice(0, 300)}`);
  }

  onturn(turn, isBegun, status) {
    this.isBusy = isBegun;
    this.turn = isBegun ? turn : "";
    if (this.row && this.row.open === "no") this.row.open = "here";
    if (!isBegun) {
      this.progress.hidden = true;
      this.questions.clear();
      if (status === "failed") announce("The turn failed", true);
      clearTimeout(this.dumping);
      this.dumping = setTimeout(() => this.loadDump().catch(() => {}), 300);
    }
    this.drawState();
  }

  onlife(how) {
    if (!this.row) return;
    if (how === "finalized") this.row.state = "finalized";
    else this.row.open = how === "open" ? "here" : "no";
    if (how !== "open") {
      this.isBusy = false;
      this.questions.clear();
    }
    this.drawState();
  }

  onrun(result) {
    this.row.result = result;
    this.drawState();
  }

  ongoal(event) {
    this.goal.show(event);
  }

  onverdict(event) {
    this.goal.judged(event);
  }

  onchild(event) {
    this.children.show(event);
  }

  onprogress(event) {
    this.progress.hidden = false;
    const words = `${event.done} of ${event.total} ${event.unit}`.trim();
    fill(this.progress, el("progress", { value: event.done, max: event.total || 1, "aria-label": "Progress" }), el("span", words));
  }

  drawState() {
    const { row } = this;
    if (!row) return;
    const isOver = row.state === "finalized";
    const isOpen = row.open !== "no";
    const asks = this.questions.count > 0;
    const state = isOver ? ["finalized", "ended"] : asks ? ["asking", "asks"] : this.isBusy ? ["running", "working"] : isOpen ? ["idle", "ready"] : row.result ? endOfRun(row.result) : ["suspended", "closed"];
    fill(this.state, chip(...state), el("span.where-it-is", plain(row.folder)));
    if (state[0] !== this.shownState) dispatchEvent(new Event("session-changed"));
    this.shownState = state[0];
    document.title = `${asks ? "(?) " : this.isBusy ? "● " : ""}${plain(nameOf(row))} – steersman`;
    if (this.stopButton && this.input) {
      this.stopButton.hidden = this.ways.hidden = !this.isBusy;
    }
    if (!isOpen) this.children.lose();
    if (row.parent) return;
    if (this.input) this.input.form.hidden = Boolean(row.workflow) && !isOpen; // a message would be refused
    this.notOpen.hidden = isOpen && !isOver;
    if (isOver) fill(this.notOpen, el("span", "This session has ended."));
    else if (!isOpen && row.workflow) fill(this.notOpen, runWords(row));
    else if (!isOpen) {
      fill(this.notOpen, el("span", "No program has this session open; a message opens it."),
        maySpeak() && el("button.plain", { type: "button", onclick: () => this.takeUp() }, "Open it"));
    }
  }

  togglePanel(isOpen = !this.node.classList.contains("has-panel")) {
    const was = this.node.classList.contains("has-panel");
    this.node.classList.toggle("has-panel", isOpen);
    this.panelButton.setAttribute("aria-expanded", String(isOpen));
    if (isOpen && !was) this.panel.querySelector("button")?.focus();
    if (!isOpen && was && this.panel.contains(document.activeElement)) this.panelButton.focus();
  }

  // What a person does -----------------------------------------------------------------------------

  isTyped(key) {
    return this.typed.has(key);
  }

  submit() {
    const text = this.input.value.trim();
    if (!text) return;
    const way = this.isBusy && !text.startsWith("/") ? this.way : "auto";
    this.input.value = "";
    sessionStorage.removeItem(`draft-${this.id}`);
    this.grow();
    this.say(text, way);
    this.ways.querySelector("input").checked = true;
    this.way = "auto";
  }

  say(text, way = "auto") {
    const key = newKey("typed");
    this.typed.add(key);
    const bubble = el("article.entry.said.is-sending", { "aria-label": "Message on its way" }, el("header", el("b", "sending…")), el("div.words", shown(text)));
    this.outbox.set(key, { text, way, bubble });
    this.pending.append(bubble);
    this.toEnd();
    return this.deliver(key);
  }

  /** Send a message until the server has it: its key makes a repetition harmless. */
  async deliver(key) {
    const message = this.outbox.get(key);
    if (!message || message.isUnderWay) return;
    message.isUnderWay = true;
    try {
      const receipt = await send("POST", `${this.path}/messages`, { text: message.text, as: message.way }, key);
      this.arrived(key);
      this.confirm(receipt);
    } catch (error) {
      const isCommand = message.text.startsWith("/");
      if (error instanceof Refused && !isCommand && (error.status === 0 || error.status >= 502)) {
        message.bubble.querySelector("b").textContent = "waits for the connection…";
        clearTimeout(this.retry);
        this.retry = setTimeout(() => this.flush(), 2000);
      } else {
        this.arrived(key);
        if (this.input && !this.input.value) {
          this.input.value = message.text;
          this.grow();
        }
        complain(error);
      }
    }
    message.isUnderWay = false;
  }

  flush() {
    for (const key of this.outbox.keys()) this.deliver(key);
  }

  arrived(key) {
    this.outbox.get(key)?.bubble.remove();
    this.outbox.delete(key);
  }

  onmine(event) {
    if (event.client_id && this.outbox.has(event.client_id)) this.arrived(event.client_id);
  }

  confirm(receipt) {
    if (receipt.type === "result" && receipt.ok && receipt.data?.left === this.id) location.hash = `#/s/${receipt.data.session}`;
    if (receipt.type !== "accepted") return;
    if (receipt.as === "queue") toast(receipt.ack_text || `Queued as #${receipt.number}`);
    if (receipt.as === "steer") toast(receipt.ack_text || "It steers at the next step");
  }

  async attempt(doing) {
    try {
      return await doing();
    } catch (error) {
      complain(error);
      return null;
    }
  }

  async stop() {
    this.stopButton.disabled = true;
    await this.attempt(() => send("POST", `${this.path}/stop`));
    this.stopButton.disabled = false;
  }

  takeUp() {
    return this.attempt(async () => {
      this.row = await send("POST", "/sessions", { resume: this.id });
      this.drawState();
    });
  }

  why(message) {
    return this.attempt(() => showWhy(this.path, message));
  }

  /** Show which files would be restored, and restore them once a person says so. */
  async onrevert(turn) {
    const plan = await this.attempt(() => command(this.id, "revert", { since: turn, is_dry_run: true }));
    if (!plan) return;
    const box = dialog("Revert files", el("p", "The files as they were before this turn. Changes by others stay."),
      el("pre", { tabindex: "0", role: "region", "aria-label": "What would be restored" }, plan.text),
      el("div.row", el("button.danger", { type: "button", onclick: async () => {
        box.close();
        const done = await this.attempt(() => command(this.id, "revert", { since: turn }));
        if (done) toast(done.text.split("\n")[0]);
      } }, "Revert"), el("button.quiet", { type: "button", onclick: () => box.close() }, "Cancel")));
  }

  async onundo() {
    const done = await this.attempt(() => command(this.id, "revert", { what: ["undo"] }));
    if (done) toast(done.text.split("\n")[0]);
  }

  onwhy(message) {
    this.why(message);
  }

  get maySpeak() {
    return maySpeak();
  }
}
