import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const text = readFileSync('ARCHITECTURE.md', 'utf8');
const sectionOf = (title: string): string => text.split(`${title}\n`)[1]!.split('\n## ')[0]!;
const isThere = (path: string): boolean =>
  ['', 'src/', 'packages/load/src/'].some((tree) => ['', '.ts', '.tsx'].some((end) => existsSync(tree + path + end)));

/** In kebab case. */
const namesIn = (row: string): string[] => [...row.matchAll(/`([a-z0-9./-]+)`/g)].map(([, name]) => name!);
const rowsOf = (title: string): string[] =>
  sectionOf(title)
    .split('\n')
    .filter((line) => line.startsWith('| '));

/** Not in the folders that their row names. */
function missingIn(row: string): string[] {
  const names = namesIn(row);
  const folders = ['', ...names.filter((name) => name.endsWith('/'))];
  const within = folders.flatMap((outer) => folders.map((inner) => outer + inner));
  return names.filter((name) => !within.some((folder) => isThere(folder + name)));
}

describe('the files and folders are there', () => {
  it.each(['# Architecture', '## Ways to read the code'])('of the table under "%s"', (title) => {
    const rows = rowsOf(title);
    expect(rows.length).toBeGreaterThan(10);
    expect(rows.flatMap(missingIn)).toEqual([]);
  });

  it('at most 15 for one way, 10 for a GET and 9 for a block; what stands in their place on Express is not counted', () => {
    const filesOf = (row: string) => namesIn(row.split(' On Express ')[0]!).filter((name) => !name.endsWith('/'));
    const most = (row: string): number => (row.startsWith('| a GET') ? 10 : row.startsWith('| a block |') ? 9 : 15);
    expect(rowsOf('## Ways to read the code').filter((row) => filesOf(row).length > most(row))).toEqual([]);
  });

  it('that a request flows through', () => {
    const columns = sectionOf('## How a request flows').matchAll(/ {2,}((?:[a-z./-]+(?:, )?)+)$/gm);
    const names = [...columns].flatMap(([, names]) => names!.split(', '));
    expect(names.length).toBeGreaterThan(8);
    expect(names.filter((name) => !isThere(name))).toEqual([]);
  });
});
