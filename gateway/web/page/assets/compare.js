// Two sessions side by side: their steps on one slider, the first difference lit, and what each came to.

import { get } from "./api.js";
import { counted, el, fill, icon, iconButton, plain, shown } from "./dom.js";
import { complain } from "./queue.js";
import { nameOf } from "./session.js";

const AROUND = 3; // steps that are shown before and after the one that is chosen

export class CompareView {
  constructor(id, other) {
    this.id = id;
    this.other = other;
    this.at = 0;
    this.build();
  }

  build() {
    this.choice = el("select.beside-choice", { "aria-label": "The other session", onchange: () => {
      location.hash = `#/s/${this.id}/beside/${this.choice.value}`;
    } });
    this.slider = el("input", { type: "range", min: "1", max: "1", value: "1", "aria-label": "Step", oninput: () => this.pick(Number(this.slider.value) - 1) });
    this.words = el("output.moment");
    this.parting = el("button.plain", { type: "button", onclick: () => this.pick(this.found.common) }, "First difference");
    this.rows = el("ol.steps-beside");
    this.facts = el("table.facts");
    this.node = el("main.inside",
      el("header.top", el("a.icon-button", { href: `#/s/${this.id}/inside`, "aria-label": "Back to the session" }, icon("back")),
        el("div.top-title", el("h1", "Side by side")), this.choice),
      el("section.time", { "aria-label": "Steps" }, iconButton("back", "One step back", () => this.pick(this.at - 1)), this.slider,
        iconButton("chevron", "One step forward", () => this.pick(this.at + 1)), this.words, this.parting),
      el("div.beside-body", this.rows, el("section", { "aria-labelledby": "facts-title" }, el("h2", { id: "facts-title" }, "What each came to"), this.facts)));
  }

  async open() {
    document.title = "Side by side – steersman";
    this.slider.disabled = this.parting.disabled = true;
    try {
      const rows = (await get("/sessions")).sessions.filter((row) => row.id !== this.id);
      fill(this.choice, !this.other && el("option", { value: "" }, "Choose a session…"),
        rows.map((row) => el("option", { value: row.id, selected: row.id === this.other || null }, `${plain(nameOf(row))} · ${row.id}`)));
      if (!this.other) return;
      this.found = await get(`/sessions/${encodeURIComponent(this.id)}/diff?other=${encodeURIComponent(this.other)}`);
    } catch (error) {
      complain(error);
      return;
    }
    const { common, is_same: isSame, steps, facts, sessions } = this.found;
    this.count = Math.max(1, ...steps.map((one) => one.length));
    this.slider.max = String(this.count);
    this.slider.disabled = false;
    this.parting.disabled = isSame;
    fill(this.facts, el("thead", el("tr", el("td"), sessions.map((one) => el("th", { scope: "col" }, one)))),
      el("tbody", facts.map(([name, ...values]) => el("tr", el("th", { scope: "row" }, name), values.map((one) => el("td", one))))));
    this.pick(isSame ? 0 : common);
  }

  close() {}

  pick(at) {
    if (!this.found) return;
    this.at = Math.min(this.count - 1, Math.max(0, at));
    const { common, is_same: isSame, steps } = this.found;
    this.slider.value = String(this.at + 1);
    this.words.textContent = `step ${this.at + 1} of ${this.count} · ${isSame ? "the same in all" : `the same for ${counted(common, "step")}`}`;
    const drawn = [];
    for (let row = Math.max(0, this.at - AROUND); row <= Math.min(this.count - 1, this.at + AROUND); row += 1) {
      drawn.push(el(`li${row === this.at ? ".is-chosen" : ""}${!isSame && row === common ? ".is-parting" : ""}`, { "aria-current": row === this.at ? "step" : null },
        steps.map((one) => this.step(one[row], row === one.length))));
    }
    fill(this.rows, drawn);
  }

  step(one, isEnd) {
    if (!one) return el("div.step.muted", isEnd ? "ends here" : "");
    return el("div.step", el("p.muted", `${one.turn ? `${one.turn} · ` : ""}${one.kind} · entry ${one.seq}`), el("pre", shown(one.text)));
  }
}
