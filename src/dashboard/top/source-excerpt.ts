import { readFileSync, realpathSync, statSync } from 'node:fs';
import { join, sep } from 'node:path';

const AROUND = 3;
const MAX_BYTES = 1024 * 1024;
const SOURCE = /\.[cm]?[jt]sx?$/;

/**
 * Lines around `src/reports.ts:48:11` from the folder in which the command runs. Leading folders may differ: the server runs elsewhere.
 * Null where there is no such source file; files outside of the folder are never read.
 */
export function readExcerpt(location: string, folder: string): string[] | null {
  const [, file, number] = /^(.+?):(\d+)(?::\d+)?$/.exec(location) ?? [];
  if (file === undefined || !SOURCE.test(file)) return null;
  const found = findSource(file.split(/[/\\]+/), folder);
  if (found === null) return null;
  const lines = readFileSync(found, 'utf8').split('\n');
  const at = Number(number);
  if (at < 1 || at > lines.length) return null;
  const from = Math.max(1, at - AROUND);
  return lines.slice(from - 1, at + AROUND).map((line, i) => {
    const here = from + i;
    return `${here === at ? '>' : ' '} ${String(here).padStart(5)} | ${line.trimEnd()}`;
  });
}

function findSource(parts: readonly string[], folder: string): string | null {
  const root = realpathSync(folder) + sep;
  for (let skip = 0; skip < parts.length; skip++) {
    try {
      const path = realpathSync(join(root, ...parts.slice(skip)));
      const { size } = statSync(path);
      if (path.startsWith(root) && SOURCE.test(path) && size <= MAX_BYTES) return path;
    } catch {
      // The next shorter path may be there.
    }
  }
  return null;
}
