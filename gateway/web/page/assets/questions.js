// Questions that wait for a person, above the input: with the tool and its arguments, whole.

import { mayApprove, send } from "./api.js";
import { announce, chip, el, fill, shown } from "./dom.js";
import { complain } from "./queue.js";
import { argumentsOf } from "./transcript.js";

/** Tools of which "always" means the same call again; of others, any call. */
const EXACT = ["shell", "read", "list", "search", "write", "edit"];
const alwaysWhat = (tool) => (EXACT.includes(tool) ? "Always this exact call" : "Always any call of it");

/** What a server asks; an address is shown, never opened by itself. */
const formOf = ({ message, address }) => el("div", el("p.question-text", shown(message, true)), address && el("p", el("code", shown(address, true))));

export class Questions {
  constructor(session) {
    this.session = session;
    this.cards = new Map();
    this.node = el("section.questions", { "aria-label": "Questions" });
    this.node.hidden = true;
  }

  get count() {
    return this.cards.size;
  }

  ask(event, isQuiet = false) {
    if (this.cards.has(event.id)) return;
    const isStep = event.kind === "ask";
    const isForm = event.kind === "form";
    const title = el("h2", { id: `question-${this.cards.size}-${event.id.replace(/\W/g, "")}` },
      isStep ? "The workflow asks" : isForm ? [el("code", shown(event.arguments.server, true)), " asks"] : [event.asker && `${event.asker}: `, event.kind === "hold" && "Held. ", "May ", el("code", shown(event.tool, true)), " run?"]);
    const body = isStep ? el("p.question-text", event.arguments.text) : isForm ? formOf(event.arguments) : argumentsOf(event.arguments);
    const rule = event.rule && el("p.muted", "asked by the rule ", el("code", event.rule), event.source && ` of ${event.source}`);
    const card = el("article.question", { "aria-labelledby": title.id }, title, event.outside && chip("failed", "leaves the folder"),
      body, event.why && el("p", shown(event.why, true)), rule, this.actions(event, isStep));
    this.cards.set(event.id, card);
    this.node.append(card);
    this.node.hidden = false;
    if (!isQuiet) announce(isForm ? `Question: ${event.arguments.message}` : isStep ? `Question: ${event.arguments.text}` : `Question: may ${event.tool} run?`, true);
  }

  actions(event, isStep) {
    if (!mayApprove()) return el("p.muted", "This device may not answer questions.");
    const reason = el("input", { type: "text", "aria-label": "Reason", placeholder: "Reason, if you deny (optional)", maxlength: "2000" });
    const row = el("div.question-actions");
    const button = (choice, word, kind) =>
      el(`button.${kind}`, { type: "button", onclick: () => this.answer(event, choice, choice === "deny" ? reason.value : "", row) }, word);
    if (isStep) {
      fill(row, event.options.map((choice) => button(choice, choice, choice === event.default ? "accent" : "plain")));
      return event.options.length ? row : this.freeText(event, row);
    }
    if (event.kind === "form") return this.formActions(event, row, button);
    if (event.kind === "hold") return this.holdActions(event, row, reason, button);
    fill(row, button("allow", "Allow", "accent"), button("always", alwaysWhat(event.tool), "plain"), button("deny", "Deny", "danger"));
    return [row, reason];
  }

  /** What a person may do with a call that is held: let it run, also with other arguments, answer in its place, deny it. */
  holdActions(event, row, reason, button) {
    const whole = JSON.stringify(event.arguments, null, 2);
    const text = el("textarea.call-arguments", { "aria-label": "Arguments, as JSON", rows: String(Math.min(10, whole.split("\n").length + 1)) });
    text.value = whole;
    reason.placeholder = "What the agent gets in its place, or why not";
    const run = el("button.accent", { type: "button", onclick: () =>
      this.answer(event, text.value === whole ? "allow" : "change", text.value === whole ? "" : text.value, row) }, "Let it run");
    const instead = el("button.plain", { type: "button", onclick: () => this.answer(event, "answer", reason.value, row) }, "Answer in its place");
    fill(row, run, instead, button("deny", "Deny", "danger"));
    return [text, row, reason];
  }

  /** A field for each that the form has; what is filled in is sent as JSON. */
  formActions(event, row, button) {
    const fields = Object.entries(event.arguments.schema?.properties || {}).map(([name, field]) => {
      const choices = field.enum || field.oneOf?.map((one) => one.const) || (field.type === "boolean" && ["true", "false"]);
      const about = { "aria-label": field.title || name, id: `form-${event.id.replace(/\W/g, "")}-${name.replace(/\W/g, "")}` };
      const input = choices ? el("select", about, el("option", { value: "" }, ""), choices.map((one) => el("option", { value: one }, one))) : el("input", { type: "text", ...about });
      input.value = field.default ?? "";
      return { name, input, line: [el("label", { for: about.id }, field.title || name), input, field.description && el("p.muted", shown(field.description, true))] };
    });
    const send = el("button.accent", { type: "button", onclick: () => {
      const filled = Object.fromEntries(fields.filter(({ input }) => input.value !== "").map(({ name, input }) => [name, input.value]));
      this.answer(event, "answer", fields.length ? JSON.stringify(filled) : "", row);
    } }, fields.length ? "Answer" : "Done");
    fill(row, send, button("deny", "Decline", "danger"));
    return [...fields.flatMap(({ line }) => line), row];
  }

  /** A field for an answer in one's own words; left empty it means the step's default. */
  freeText(event, row) {
    const text = el("textarea", { "aria-label": "Answer", rows: "2", placeholder: event.default || "Answer" });
    const button = el("button.accent", { type: "submit" }, "Answer");
    const form = el("form.free-answer", { onsubmit: (submitted) => {
      submitted.preventDefault();
      const said = text.value.trim() || event.default;
      if (said) this.answer(event, said, "", row);
      else text.focus();
    } }, text, fill(row, button));
    text.addEventListener("keydown", (pressed) => {
      if (pressed.key !== "Enter" || pressed.shiftKey || pressed.isComposing) return;
      pressed.preventDefault();
      form.requestSubmit();
    });
    return form;
  }

  async answer(event, choice, reason, row) {
    this.hadFocus = this.cards.get(event.id)?.contains(document.activeElement);
    const buttons = [...row.querySelectorAll("button")];
    buttons.forEach((button) => (button.disabled = true));
    try {
      const path = `/sessions/${encodeURIComponent(this.session)}/questions/${encodeURIComponent(event.id)}`;
      await send("POST", path, { choice, reason });
      this.close(event.id, "");
    } catch (error) {
      buttons.forEach((button) => (button.disabled = false));
      complain(error); // what does not fit can be mended; a question that is over goes by its event
    }
  }

  close(id, how) {
    const card = this.cards.get(id);
    if (!card) return;
    const hadFocus = card.contains(document.activeElement) || this.hadFocus; // a disabled button loses it
    this.hadFocus = false;
    card.remove();
    this.cards.delete(id);
    this.node.hidden = this.cards.size === 0;
    if (how) announce(`The question was ${how}`);
    if (hadFocus) (this.node.querySelector("button") || document.getElementById("input"))?.focus();
  }

  clear() {
    for (const id of [...this.cards.keys()]) this.close(id, "");
  }
}
