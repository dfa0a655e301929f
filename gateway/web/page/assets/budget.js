// Whether a text is more than can be read as Markdown and drawn in a moment.

export const LARGEST = 100_000; // characters of a whole text
export const LARGEST_TAIL = 20_000; // the same where the last part is read again with each piece
const STEPS = 2_000; // for each character: the parser looks from each sign through all of its block
const DEEPEST = 24; // lists and quotes inside each other, from which the parser gets slow, and then fails
export const MOST_PARTS = 3 * DEEPEST; // nodes inside each other
const MOST_CELLS = 50_000; // of tables: a short line is a whole row
const MARKERS = /^(?![-*_ \t]+$)(?:[ \t]*(?:>|(?:[-*+]|\d{1,9}[.)])(?=[ \t]|$)))+/gm;
const COLUMNS = /^[ \t>*+\d.)|:-]+$/gm;
const EMPHASES = /[*_~]/g;
const SIGNS = /[[\]()<>`!\\&@|]|:\/\/|www/g;
const BLOCKS = /\n(?:[ \t]*\n| {0,3}(?=(?:[-*+]|1[.)]) +\S|#{1,6} ))/; // what ends a paragraph, and what begins an item

/** Whether a text has more than `most` characters, or lists, quotes, tables or signs that take too long. */
export function isTooMuch(text, most) {
  if (text.length > most) return true;
  for (const [lead] of text.matchAll(MARKERS)) {
    const indent = lead.match(/^[ \t]*/)[0].replaceAll("\t", "    ").length;
    if (lead.match(/>|[-*+]|\d+[.)]/g).length + indent / 2 > DEEPEST) return true;
  }
  let columns = 0;
  for (const [line] of text.matchAll(COLUMNS)) columns = Math.max(columns, line.split("|").length);
  if (columns > 2 && columns * text.split("\n").length > MOST_CELLS) return true;
  let steps = 0;
  const count = (block, signs) => block.match(signs)?.length ?? 0;
  for (const block of text.split(BLOCKS)) steps += block.length * (10 * count(block, EMPHASES) + count(block, SIGNS));
  return steps > most * STEPS;
}
