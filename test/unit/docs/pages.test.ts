import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { describe, expect, it } from 'vitest';
import { pages } from '../../shipped/docs/code-blocks.js';

const SHIPPED_BESIDE = ['SECURITY.md', 'CHANGELOG.md'];
const textOf = (page: string): string => readFileSync(page, 'utf8');
const withoutCode = (text: string): string => text.replaceAll(/^```.*?^```$/gms, '').replaceAll(/`[^`\n]*`/g, 'code');

/** GitHub's name of a heading. */
const anchorOf = (heading: string): string =>
  heading
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');
const anchorsOf = (page: string): string[] =>
  textOf(page)
    .replaceAll(/^```.*?^```$/gms, '')
    .split('\n')
    .filter((line) => /^#+ /.test(line))
    .map((line) => anchorOf(line.replace(/^#+ /, '')));

function packed(): Set<string> {
  const text = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], { encoding: 'utf8' });
  const [{ files }] = JSON.parse(text) as [{ files: { path: string }[] }];
  return new Set(files.map(({ path }) => path));
}

describe('README and guides', { timeout: 120_000 }, () => {
  it('lead only to files of the package, to headings that are there, and to pictures of the repository', () => {
    const files = packed();
    const dead = [...pages(), ...SHIPPED_BESIDE].flatMap((page) =>
      [...withoutCode(textOf(page)).matchAll(/\]\(([^)\s]+)\)/g)]
        .map(([, target]) => target!)
        .filter((target) => !/^https?:/.test(target))
        .filter((target) => {
          const [path, anchor] = target.split('#') as [string, string?];
          const file = path === '' ? page : normalize(join(dirname(page), path));
          if (file.endsWith('.png')) return !existsSync(file);
          return !files.has(file) || (anchor !== undefined && !anchorsOf(file).includes(anchor));
        })
        .map((target) => `${page}: ${target}`),
    );
    expect(dead).toEqual([]);
  });

  it('are all in the index, and each is about one question', () => {
    const index = textOf('docs/README.md');
    const guides = readdirSync('docs').filter((file) => file.endsWith('.md') && file !== 'README.md');
    expect(guides.filter((file) => !index.includes(`](${file})`))).toEqual([]);
  });

  it('name no file of the repository that is not there', () => {
    const missing = pages().flatMap((page) =>
      [...textOf(page).matchAll(/`((?:src|test|bench|packages|scripts|examples)\/[\w./-]+)`/g)]
        .filter(([, file]) => !existsSync(file!))
        .map(([, file]) => `${page}: ${file}`),
    );
    expect(missing).toEqual([]);
  });

  it('have a language tag on every block, and a README that a reader gets through', () => {
    const bare = pages().filter((page) => {
      const fences = textOf(page).match(/^```.*$/gm) ?? [];
      return fences.some((fence, i) => i % 2 === 0 && fence === '```');
    });
    expect(bare).toEqual([]);
    expect(textOf('README.md').split('\n').length).toBeLessThanOrEqual(131);
  });

  it('have the tables that `scripts/readme-tables.mjs` writes', () => {
    // Fails with what to run.
    execFileSync('node', ['scripts/readme-tables.mjs', '--check']);
  });

  it('have options that are functions in the reference, each in a row of its own', () => {
    const rows = textOf('docs/options.md').split('\n');
    const named = (name: string): string[] => rows.filter((row) => row.startsWith(`| \`${name}\` `));
    expect(['unit', 'varyBy', 'authorize', 'redact'].filter((name) => named(name).length === 0)).toEqual([]);
    expect(rows.filter((row) => row.includes('*/'))).toEqual([]);
  });

  it('explain every error code, and no other', () => {
    const sources = readdirSync('src', { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
    const codes = new Set(sources.flatMap((file) => textOf(join('src', file)).match(/'PERF_ERR_\w+'/g) ?? []));
    const sections = textOf('docs/errors.md').split(/^## /m).slice(1);
    const explained = sections.map((section) => `'${section.split('\n')[0]!}'`);
    expect(new Set(explained)).toEqual(codes);
    expect(sections.filter((section) => !section.includes('**Fix:**'))).toEqual([]);
  });
});
