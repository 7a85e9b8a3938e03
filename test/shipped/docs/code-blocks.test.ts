import { beforeAll, describe, expect, it } from 'vitest';
import { blocksOf, pages, problemsOf, run, type CodeBlock } from './code-blocks.js';

const all = pages().flatMap((page) => blocksOf(page));
const blocks = all.filter(({ flags }) => !flags.includes('next'));
const later = all.filter(({ flags }) => flags.includes('next'));
const at = ({ page, line }: CodeBlock): string => `${page}:${line}`;

describe('code in README and guides', { timeout: 180_000 }, () => {
  let problems: string[];
  beforeAll(() => {
    problems = problemsOf('all', blocks);
  });

  it('compiles in strict mode against the build, every block', () => {
    expect(blocks.length).toBeGreaterThan(40);
    expect(problems).toEqual([]);
  });

  it('is checked: a block that is wrong is found, with its page and line', () => {
    const page = ['# A page', '', '```ts', 'PerfModule.forRoot({', '  latency: { slow: 1 },', '});', '```', ''].join(
      '\n',
    );
    expect(problemsOf('planted', blocksOf('docs/planted.md', page))).toEqual([
      expect.stringMatching(/^docs\/planted\.md:5: error TS2353: .*'slow'/),
    ]);
  });

  it('knows no flags but `compile` and `next`', () => {
    expect(all.flatMap(({ flags }) => flags).filter((flag) => !['compile', 'next'].includes(flag))).toEqual([]);
  });

  it('runs unless it is marked `compile`, modules on Fastify and Express, and ends', () => {
    const runnable = blocks.filter(({ flags }) => !flags.includes('compile'));
    expect(runnable.length).toBeGreaterThan(60);
    const failed = [...run('all', runnable)].filter(([, outcome]) => outcome !== 'ok');
    expect(failed.map(([block, outcome]) => `${at(block)}: ${outcome}`)).toEqual([]);
  });

  it.skipIf(later.length === 0)('waits for the library where a block is marked `next`', () => {
    const still = new Set(problemsOf('next', later).map((problem) => problem.split(': ')[0]!.replace(/:\d+$/, '')));
    for (const block of later)
      console.log(`${at(block)} is marked next${still.has(block.page) ? '' : ', and compiles'}`);
  });
});
