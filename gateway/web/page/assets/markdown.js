// Markdown as elements: the parser of `marked` finds the parts, and each becomes a node. No text becomes markup.

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

const render = (table, tokens) =>
  tokens.map((token) => (table[token.type] ? table[token.type](token) : shown(token.raw)));
const inlines = (tokens) => render(inline, tokens);
const blocks = (tokens) => render({ ...inline, ...block }, tokens);

/** Nodes for a whole text. */
export function markdown(text) {
  const made = document.createDocumentFragment();
  add(made, blocks(lexer(text, { gfm: true })));
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
    const tokens = lexer(this.text.slice(this.settled), { gfm: true });
    const last = tokens.findLastIndex((token) => token.type !== "space");
    tokens.forEach((token, at) => {
      const before = this.place.childNodes.length;
      add(this.place, blocks([token]));
      if (at < last) this.settled += token.raw.length;
      else if (at === last) this.tail = [...this.place.childNodes].slice(before);
    });
  }
}
