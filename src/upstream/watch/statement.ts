/** Longer statements are cut: a pass takes some microseconds. */
const MAX_LENGTH = 4_096;

/** A name in backticks; a text, which a cut may leave open; a number that is no part of a name. */
const NAME_OR_VALUE =
  /`[^`]*`|'(?:[^'\\]|\\.|'')*'?|"(?:[^"\\]|\\.|"")*"?|\b(?:0x[\da-f]+|\d[\d.]*(?:e[+-]?\d+)?)\b/gis;

/** A statement of MySQL without its values: statements of one shape are alike. */
export const removeValues = (statement: string): string =>
  statement.slice(0, MAX_LENGTH).replace(NAME_OR_VALUE, (part) => (part.startsWith('`') ? part : '?'));
