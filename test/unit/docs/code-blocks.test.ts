import { beforeAll, describe, expect, it } from 'vitest';
import { blocksOf, pages, problemsOf, run, type CodeBlock } from './code-blocks.js';

const all = pages().flatMap((page) => blocksOf(page));
const blocks = all.filter(({ flags }) => !flags.includes('next'));
const later = all.filter(({ flags }) => flags.includes('next'));
const at = ({ page, line }: CodeBlock): string => `${page}:${line}`;

describe('code in README and guides', { timeout: 180_000 }, () => {
  beforeAll(() => expect(blocks.length).toBeGreaterThan(40));

  it('compiles in strict mode against the build, every block', () => {
    expect(problemsOf('all', blocks)).toEqual([]);
  });

  it('is checked: a block that is wrong is found, with its page and line', () => {
    const page = ['# A page', '', '```ts', 'PerfModule.forRoot({', '  latency: { slow: 1 },', '});', '```', ''].join(
      '\n',
    );
    expect(problemsOf('planted', blocksOf('docs/planted.md', page))).toEqual([
      expect.stringMatching(/^docs\/planted\.md:5: error TS2561: .*'slow'/),
    ]);
  });

  it('has a language tag on every block', () => {
    const open = pages().flatMap((page) => blocksOf(page).map(({ flags }) => flags));
    expect(open.flat().filter((flag) => !['run', 'next'].includes(flag))).toEqual([]);
  });

  it.each(blocks.filter(({ flags }) => flags.includes('run')).map((block) => [at(block), block] as const))(
    '%s runs, on Fastify and Express, and ends',
    (where, block) => {
      expect(run(where.replaceAll(/\W+/g, '-'), block)).toEqual({ status: 0, output: expect.any(String) as string });
    },
  );

  it.skipIf(later.length === 0)('waits for the library where a block is marked `next`', () => {
    const still = new Set(problemsOf('next', later).map((problem) => problem.split(': ')[0]!.replace(/:\d+$/, '')));
    for (const block of later)
      console.log(`${at(block)} is marked next${still.has(block.page) ? '' : ', and compiles'}`);
  });
});
