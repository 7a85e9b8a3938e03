// Refuses openings of comments that hide the subject: "Of the calls: those that failed" says less than "Calls that failed".
// `node scripts/english.mjs` checks sources, examples, scripts and benchmarks.
import { readdirSync, readFileSync } from 'node:fs';
import { sep } from 'node:path';

const OPENING = /^(?:Of|What|Whatever|Who|Whoever|Whose|Whom|Where|Nobody|Somebody|The same|Those|Not|Else)\b/;
/** A comment, or a line that begins a sentence of its own after a blank or a tag. */
const COMMENT = /(?:\/\*\*|(?<![:'"`])\/\/|^\s*\*)\s+(?!@)(.+)/;

/** Lines of a source text whose comment begins with a word that is no subject: `[line number, comment]`. */
export function badOpenings(text) {
  const lines = text.split('\n');
  return lines.flatMap((line, index) => {
    const comment = COMMENT.exec(line)?.[1];
    if (comment === undefined || !OPENING.test(comment) || continues(lines, index)) return [];
    return [[index + 1, comment]];
  });
}

/** Whether the comment goes on from the line above: its sentence begins there. */
function continues(lines, index) {
  if (/\/\*\*/.test(lines[index])) return false;
  const above = lines[index - 1] ?? '';
  return /^\s*(?:\/\/|\*)\s+\S/.test(above) && !/[.:!?`]\s*$/.test(above);
}

if (import.meta.main ?? process.argv[1] === import.meta.filename) {
  const folders = ['src', 'packages/load/src', 'examples', 'scripts', 'bench'];
  const files = folders.flatMap((folder) =>
    readdirSync(folder, { recursive: true })
      .map((file) => `${folder}/${file.split(sep).join('/')}`)
      .filter((file) => /\.(?:tsx?|mts|mjs)$/.test(file) && !file.includes('/node_modules/')),
  );
  const found = files.flatMap((file) =>
    badOpenings(readFileSync(file, 'utf8')).map(([line, comment]) => `${file}:${line}: ${comment}`),
  );
  for (const one of found) console.error(one);
  if (found.length > 0) {
    console.error('These comments do not begin with their subject: a class, a function, a value, a verb.');
    process.exitCode = 1;
  }
}
