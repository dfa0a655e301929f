// Markdown as elements: the parser of `marked` finds the parts, and each becomes a node. No text becomes markup.

import { LARGEST, LARGEST_TAIL, MOST_PARTS, isTooMuch } from "./budget.js";
import { add, el, shown } from "./dom.js";
import { highlighted } from "./highlight.js";
import { lexer } from "./marked.js";

const NAMED = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00a0" };

const decoded = (text) =>
  text.replace(/&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|(\w+));/gi, (whole, decimal, hex, name) => {
    if (name) return NAMED[name] ?? whole;
    const code = decimal ? Number(decimal) : parseInt(hex, 16);
    return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : whole;
  });

const block = {
  space: () => null,
  def: () => null,
  hr: () => el("hr"),
  heading: (token) => el(`h${Math.min(6, token.depth + 2)}`, inlines(token.tokens)),
  paragraph: (token) => el("p", inlines(token.tokens)),
  text: (token) => (token.tokens ? inlines(token.tokens) : shown(decoded(token.text))),
  html: (token) => el("p.raw", token.text.trimEnd()),
  blockquote: (token) => el("blockquote", blocks(token.tokens)),
  code: (token) => codeBlock(token.text, (token.lang || "").split(/\s/)[0]),
  list: (token) => {
    const list = el(token.ordered ? "ol" : "ul");
    if (token.ordered && token.start > 1) list.start = token.start;
    for (const item of token.items) list.append(listItem(item));
    return list;
  },
  table: (token) => {
    const cell = (kind, data, at) => {
      const made = el(kind, inlines(data.tokens));
      if (token.align[at]) made.className = `to-${token.align[at]}`;
      return made;
    };
    return el("div.table", { tabindex: "0", role: "region", "aria-label": "Table" },
      el("table",
        el("thead", el("tr", token.header.map((data, at) => cell("th", data, at)))),
        el("tbody", token.rows.map((row) => el("tr", row.map((data, at) => cell("td", data, at)))))));
  },
};

const inline = {
  text: (token) => (token.tokens ? inlines(token.tokens) : shown(decoded(token.text))),
  escape: (token) => shown(token.text),
  html: (token) => shown(token.text),
  br: () => el("br"),
  strong: (token) => el("strong", inlines(token.tokens)),
  em: (token) => el("em", inlines(token.tokens)),
  del: (token) => el("del", inlines(token.tokens)),
  codespan: (token) => el("code", token.text),
  image: (token) => link(token.href, [shown(`image: ${token.text || token.href}`)]),
  link: (token) => link(token.href, inlines(token.tokens)),
};

function listItem(item) {
  const made = el("li");
  if (item.task) {
    made.className = "task";
    made.append(el("span.box", { role: "img", "aria-label": item.checked ? "done" : "open" }, item.checked ? "✓" : " "));
  }
  add(made, [blocks(item.tokens.filter((token) => token.type !== "checkbox"))]);
  return made;
}

/** A link that says where it goes, unless its text does; other schemes stay text. */
function link(href, content) {
  let target;
  try {
    target = new URL(href);
  } catch {
    target = null;
  }
  if (!target || !["http:", "https:", "mailto:"].includes(target.protocol)) {
    return el("span", content, el("span.where", ` (${href})`));
  }
  const made = el("a", { href: target.href, rel: "noopener noreferrer", target: "_blank" }, content);
  const where = target.host || target.pathname;
  return made.textContent.includes(where) ? made : el("span", made, el("span.where", ` (${where})`));
}

function codeBlock(text, language) {
  const copy = el("button.quiet.copy", { type: "button", onclick: () => {
    navigator.clipboard?.writeText(text);
    copy.textContent = "copied";
    setTimeout(() => (copy.textContent = "copy"), 1500);
  } }, "copy");
  return el("figure.code", el("figcaption", el("span", language || "text"), copy),
    el("pre", { tabindex: "0", role: "region", "aria-label": `Code, ${language || "text"}` }, highlighted(text, language)));
}

let depth = 0;

function render(table, tokens) {
  if (depth === MOST_PARTS) throw new RangeError("nested too deeply");
  depth += 1;
  try {
    return tokens.map((token) => (table[token.type] ? table[token.type](token) : shown(token.raw)));
  } finally {
    depth -= 1;
  }
}

const inlines = (tokens) => render(inline, tokens);
const blocks = (tokens) => render({ ...inline, ...block }, tokens);

/** What `draw` makes of the parts of a text, or else the text as it is: one that is more than can be drawn. */
function drawn(text, most, draw) {
  if (!isTooMuch(text, most)) {
    try {
      return draw(lexer(text, { gfm: true }));
    } catch (error) {
      if (!(error instanceof RangeError)) console.error(error);
    }
  }
  return el("p.raw", text);
}

/** Nodes for a whole text. */
export function markdown(text) {
  const made = document.createDocumentFragment();
  add(made, [drawn(text, LARGEST, blocks)]);
  return made;
}

/** Shows a text that grows: only its last part is read again with each piece. */
export class Growing {
  constructor(place) {
    this.place = place;
    this.text = "";
    this.settled = 0; // characters whose nodes stay as they are
    this.tail = [];
    this.isDrawn = true;
  }

  grow(piece) {
    this.text += piece;
    if (this.isDrawn) {
      this.isDrawn = false;
      requestAnimationFrame(() => this.draw());
      if (document.hidden) setTimeout(() => this.draw(), 200);
    }
  }

  draw() {
    if (this.isDrawn) return;
    this.isDrawn = true;
    for (const node of this.tail) node.remove();
    const text = this.text.slice(this.settled);
    const parts = drawn(text, LARGEST_TAIL, (tokens) => {
      const last = tokens.findLastIndex((token) => token.type !== "space");
      return tokens.map((token, at) => ({ nodes: blocks([token]), length: token.raw.length, isLast: at >= last }));
    });
    this.tail = [];
    for (const part of [parts].flat()) {
      const before = this.place.childNodes.length;
      add(this.place, part.nodes || [part]);
      if (part.nodes && !part.isLast) this.settled += part.length;
      else this.tail.push(...[...this.place.childNodes].slice(before));
    }
  }
}
