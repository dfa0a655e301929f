// Colours for code: comments, strings, numbers and words of some families of languages; no more than that.

import { el, shown } from "./dom.js";

const C = "abstract as async await bool boolean break byte case catch chan char class const constexpr continue " +
  "default defer delete do double else enum export extends extern false final finally float fn for from func function go " +
  "goto if impl implements import in instanceof int interface is let long loop match mod move mut namespace new " +
  "nil null nullptr object of operator override package private protected pub public range readonly record ref return self " +
  "short signed sizeof static string struct super switch template this throw throws trait true try type typedef typeof undefined union " +
  "unsafe unsigned use using val var virtual void volatile when where while with yield";
const PYTHON = "False None True and as assert async await break case class continue def del elif else except finally for from " +
  "global if import in is lambda match nonlocal not or pass raise return self try while with yield end do then unless module require begin rescue";
const SHELL = "if then else elif fi for while until do done case esac in function return local export set unset readonly source exit cd echo";
const SQL = "select from where insert into values update set delete create table index view drop alter add column primary key foreign " +
  "references join left right inner outer on group by order having limit offset union all distinct as and or not null is in like between case when then else end with begin commit rollback pragma";

const STRING = /"(?:[^"\\\n]|\\.)*"?|'(?:[^'\\\n]|\\.)*'?/;
const NUMBER = /\b(?:0[xob][\da-f_]+|\d[\d_]*(?:\.\d+)?(?:e[+-]?\d+)?)\b/i;
const family = (comment, words, string = STRING) => ({ comment, string, words: new Set(words.split(" ")) });

const curly = family(/\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$)/, C, new RegExp("`(?:[^`\\\\]|\\\\.)*`?|" + STRING.source));
const python = family(/#[^\n]*/, PYTHON, new RegExp('"""[\\s\\S]*?(?:"""|$)|\'\'\'[\\s\\S]*?(?:\'\'\'|$)|' + STRING.source));
const shell = family(/(?<=^|\s)#[^\n]*/m, SHELL);
const data = family(/(?<=^|\s)#[^\n]*/m, "true false null yes no");
const sql = { ...family(/--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)/, SQL), isLoose: true };
const markup = { comment: /<!--[\s\S]*?(?:-->|$)/, string: STRING, words: new Set(), name: /<\/?[\w:-]+|\/?>/ };
const style = family(/\/\*[\s\S]*?(?:\*\/|$)/, "important inherit initial none auto");

const FAMILIES = {};
for (const [kind, names] of [
  [curly, "js javascript ts typescript jsx tsx java c cpp c++ h hpp cs csharp go rust rs kotlin kt swift php scala dart zig proto"],
  [python, "py python ruby rb elixir lua julia"],
  [shell, "sh bash zsh shell console make makefile dockerfile"],
  [data, "json toml yaml yml ini conf"],
  [sql, "sql"],
  [markup, "html xml svg vue"],
  [style, "css scss less"],
]) for (const name of names.split(" ")) FAMILIES[name] = kind;

const made = new Map();

function pattern(kind) {
  if (!made.has(kind)) {
    const parts = [`(?<comment>${kind.comment.source})`, `(?<string>${kind.string.source})`];
    if (kind.name) parts.push(`(?<name>${kind.name.source})`);
    parts.push(`(?<number>${NUMBER.source})`, "(?<word>[A-Za-z_$][\\w$]*)(?<call>\\s*\\()?");
    made.set(kind, new RegExp(parts.join("|"), "gm"));
  }
  return made.get(kind);
}


/** Nodes for code in a language; an unknown one stays as it is. */
export function highlighted(text, language) {
  const name = language.toLowerCase();
  const code = el("code");
  if (name === "diff" || name === "patch") {
    for (const line of text.split(/(?<=\n)/)) {
      const kind = line.startsWith("+") ? "plus" : line.startsWith("-") ? "minus" : line.startsWith("@") ? "comment" : "";
      code.append(kind ? el(`span.code-${kind}`, line) : shown(line));
    }
    return code;
  }
  const kind = FAMILIES[name];
  if (!kind || text.length > 100_000) {
    code.append(shown(text));
    return code;
  }
  let from = 0;
  for (const found of text.matchAll(pattern(kind))) {
    const { comment, string, number, name: tag, word, call } = found.groups;
    const isWord = word && kind.words.has(kind.isLoose ? word.toLowerCase() : word);
    const tone = comment ? "comment" : string ? "string" : number ? "number" : tag || isWord ? "word" : call ? "call" : "";
    if (!tone) continue;
    const length = word ? word.length : found[0].length;
    code.append(shown(text.slice(from, found.index)), el(`span.code-${tone}`, text.slice(found.index, found.index + length)));
    from = found.index + length;
  }
  code.append(shown(text.slice(from)));
  return code;
}
