// Elements are built here, and only here does text become part of the page: as text, never as markup.

// Characters that act on a terminal, hide, or turn the direction of text; as gateway/wording/terminal.py has them.
const ACTING =
  "\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u061c\\u180e\\u200b\\u2028-\\u202e\\u2060-\\u206f\\ufeff" +
  "\\ufff9-\\ufffb\\u{e0000}-\\u{e007f}\\p{Cs}";
// What joins letters and emoji, and blank letters: shown only where a person consents to something.
const JOINING =
  "\\u00ad\\u034f\\u115f\\u1160\\u200c-\\u200f\\u3164\\ufe00-\\ufe0f\\uffa0\\u{e0100}-\\u{e01ef}";
const AUDITED = new RegExp(`[${ACTING}]`, "gu");
const EXPOSED = new RegExp(`[${ACTING}${JOINING}]`, "gu");

const escaped = (char) => {
  const code = char.codePointAt(0);
  if (code > 0xffff) return `\\U${code.toString(16).padStart(8, "0")}`;
  return code < 0x100
    ? `\\x${code.toString(16).padStart(2, "0")}`
    : `\\u${code.toString(16).padStart(4, "0")}`;
};

/** Text for an attribute or a title: what acts or hides is written as an escape. */
export const plain = (text) => String(text).replace(AUDITED, escaped);

const MOST_MARKS = 1_000;

/** Nodes for a text, with marks where a character acts or hides; `exposing` marks joiners, too. */
export function shown(text, exposing = false) {
  const pattern = exposing ? EXPOSED : AUDITED;
  const source = String(text);
  const nodes = document.createDocumentFragment();
  let from = 0;
  let marks = 0;
  for (const found of source.matchAll(pattern)) {
    if ((marks += 1) > MOST_MARKS) break;
    if (found.index > from) nodes.append(source.slice(from, found.index));
    const mark = document.createElement("span");
    mark.className = "hidden-char";
    mark.textContent = escaped(found[0]);
    nodes.append(mark);
    from = found.index + found[0].length;
  }
  if (from < source.length) nodes.append(source.slice(from).replace(pattern, escaped));
  return nodes;
}

/**
 * An element: `el("button.quiet", { onclick, "aria-label": "…" }, child, …)`.
 * Strings among the children are shown as text; null and false are left out.
 */
export function el(kind, ...parts) {
  const [tag, ...classes] = kind.split(".");
  const made = document.createElement(tag || "div");
  if (classes.length) made.className = classes.join(" ");
  const first = parts[0];
  const isAttributes = first && typeof first === "object" && !(first instanceof Node) && !Array.isArray(first);
  if (isAttributes) set(made, parts.shift());
  add(made, parts);
  return made;
}

/** Set attributes, and listeners by names such as `onclick`; false and null take an attribute away. */
export function set(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === false || value == null) node.removeAttribute(name);
    else node.setAttribute(name, value === true ? "" : plain(value));
  }
}

/** Append children. */
export function add(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child == null || child === false) continue;
    node.append(child instanceof Node ? child : shown(child));
  }
}

/** Replace what an element holds. */
export function fill(node, ...children) {
  node.replaceChildren();
  add(node, children);
  return node;
}

const ICONS = {
  back: "M15 5l-7 7 7 7",
  up: "M12 19V5M6 11l6-6 6 6",
  down: "M12 5v14M6 13l6 6 6-6",
  grip: "M9 6h.01M15 6h.01M9 12h.01M15 12h.01M9 18h.01M15 18h.01",
  close: "M6 6l12 12M18 6L6 18",
  stop: "M7 7h10v10H7z",
  send: "M12 19V5M5 12l7-7 7 7",
  panel: "M4 5h16v14H4zM15 5v14",
  inside: "M12 4v5M12 9h-6v4M12 9h6v4M4 13h4v5H4zM16 13h4v5h-4zM12 9v4M10 13h4v5h-4z",
  plus: "M12 5v14M5 12h14",
  steer: "M4 12h12M11 7l5 5-5 5M20 5v14",
  edit: "M5 19h3L18.5 8.5l-3-3L5 16zM13.5 7.5l3 3",
  why: "M8 8.2a4 4 0 1 1 5.6 3.7c-1.1.5-1.6 1.2-1.6 2.4v.4M12 19h.01",
  check: "M5 13l4.5 4.5L19 7",
  chevron: "M9 6l6 6-6 6",
  dots: "M6 12h.01M12 12h.01M18 12h.01",
};

/** A drawing from the few above; it says nothing to a screen reader. */
export function icon(name) {
  const space = "http://www.w3.org/2000/svg";
  const drawing = document.createElementNS(space, "svg");
  const path = document.createElementNS(space, "path");
  for (const [key, value] of Object.entries({
    class: `icon icon-${name}`, viewBox: "0 0 24 24", fill: "none", stroke: "currentColor",
    "stroke-width": name === "grip" || name === "dots" ? "3" : "1.8",
    "stroke-linecap": "round", "stroke-linejoin": "round", "aria-hidden": "true",
  })) drawing.setAttribute(key, value);
  path.setAttribute("d", ICONS[name]);
  drawing.append(path);
  return drawing;
}

/** A button with a drawing, and perhaps a word. */
export function iconButton(name, label, onclick, word = "", more = {}) {
  return el("button.icon-button", { type: "button", "aria-label": word ? null : label, title: label, onclick, ...more },
    icon(name), word && el("span", word));
}

/** A small label that says in which state something is. */
export const chip = (state, word = state) => el(`span.chip.is-${String(state).replace(/[^a-z_]/g, "") || "none"}`, word);

/** Say something to screen readers. */
export function announce(text, isUrgent = false) {
  const place = document.getElementById(isUrgent ? "assertive" : "polite");
  place.textContent = "";
  setTimeout(() => (place.textContent = plain(text)), 50);
}

/** Show a message for some seconds. */
export function toast(text, isBad = false) {
  const note = el(`div.toast${isBad ? ".is-bad" : ""}`, text);
  const place = document.getElementById("toasts");
  place.append(note);
  if (place.children.length > 2) place.firstChild.remove();
  setTimeout(() => note.remove(), isBad ? 9000 : 4000);
}

/** A dialog that is gone once it is closed. */
export function dialog(title, ...content) {
  const heading = el("h2", { id: "dialog-title" }, title);
  const box = el("dialog", { "aria-labelledby": "dialog-title" },
    el("header.dialog-head", heading, iconButton("close", "Close", () => box.close())),
    el("div.dialog-body", { tabindex: "0", role: "region", "aria-labelledby": "dialog-title" }, content));
  box.addEventListener("close", () => box.remove());
  box.addEventListener("click", (event) => event.target === box && box.close());
  document.body.append(box);
  box.showModal();
  return box;
}

// Words for times and amounts ----------------------------------------------------------------------

export const clock = (time) =>
  new Date(time).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });

/** A day and a time: today's without the day. */
export function moment(time) {
  const date = new Date(time);
  const isToday = date.toDateString() === new Date().toDateString();
  return isToday ? clock(time) : date.toLocaleString([], { weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
}

export function ago(seconds) {
  const past = Math.max(0, Date.now() / 1000 - seconds);
  if (past < 60) return "now";
  if (past < 3600) return `${Math.floor(past / 60)} min`;
  if (past < 86400) return `${Math.floor(past / 3600)} h`;
  if (past < 7 * 86400) return `${Math.floor(past / 86400)} d`;
  return new Date(seconds * 1000).toLocaleDateString();
}

export const amount = (count) =>
  count < 1000 ? String(count) : count < 1e6 ? `${(count / 1000).toFixed(count < 10000 ? 1 : 0)}k` : `${(count / 1e6).toFixed(1)}M`;

/** A cost as the terminal writes it: in whatever currency the prices are configured in. */
export const money = (cost) => cost.toFixed(cost < 1 ? 4 : 2);

export const seconds = (count) =>
  count < 60 ? `${count < 10 ? count.toFixed(1) : Math.round(count)} s` : `${Math.floor(count / 60)} min ${Math.round(count % 60)} s`;

export const counted = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;
