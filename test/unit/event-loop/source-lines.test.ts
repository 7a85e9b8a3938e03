import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { SourceLines } from '../../../src/event-loop/source-lines.js';

const MAX_BYTES = 1_000_000;
const folder = realpathSync(mkdtempSync(join(tmpdir(), 'perf-maps-')));
afterAll(() => rmSync(folder, { recursive: true }));

/** Line 2, column 3 of the code came from line 5, column 7 of `source` (counted from 1). */
const map = (source: string) => ({ version: 3, sources: [source], names: [], mappings: ';EAIM' });
const inlined = (payload: object): string =>
  `//# sourceMappingURL=data:application/json;base64,${Buffer.from(JSON.stringify(payload)).toString('base64')}`;
const write = (name: string, comment: string): string => {
  const file = join(folder, 'dist', name);
  mkdirSync(join(folder, 'dist'), { recursive: true });
  writeFileSync(file, `const a = 1;\n  work();\n${comment}`);
  return file;
};
const frame = (file: string) => ({ name: 'work', file, line: 2, column: 3, functionLine: 1, async: false });

describe('source maps', () => {
  const maps = new SourceLines(folder, MAX_BYTES);

  it('follow a map beside the file', () => {
    const file = write('a.js', '//# sourceMappingURL=a.js.map\n');
    writeFileSync(`${file}.map`, JSON.stringify(map('../src/a.ts')));
    expect(maps.locate(frame(file))).toBe('src/a.ts:5:7');
  });

  it('follow a map inside the file, for a file that is named by its URL', () => {
    const inline = Buffer.from(JSON.stringify(map('../src/b.ts'))).toString('base64');
    const file = write('b.js', `//# sourceMappingURL=data:application/json;charset=utf-8;base64,${inline}`);
    expect(maps.locate(frame(pathToFileURL(file).href))).toBe('src/b.ts:5:7');
  });

  it('take the path of a bundler’s source', () => {
    const inline = Buffer.from(JSON.stringify(map('webpack://app/./src/c.ts'))).toString('base64');
    const file = write('c.js', `//# sourceMappingURL=data:application/json;base64,${inline}`);
    expect(maps.locate(frame(file))).toBe('src/c.ts:5:7');
  });

  it('honour the root of the sources', () => {
    const file = write('r.js', '//# sourceMappingURL=r.js.map');
    writeFileSync(`${file}.map`, JSON.stringify({ ...map('r.ts'), sourceRoot: '../lib/' }));
    expect(maps.locate(frame(file))).toBe('lib/r.ts:5:7');
  });

  it.each([
    ['no comment', ''],
    ['a map that is gone', '//# sourceMappingURL=gone.js.map'],
    ['a map that is none', '//# sourceMappingURL=data:application/json;base64,bm8='],
    ['a map without mappings', inlined({ version: 3, sources: ['x.ts'] })],
    ['a map without sources', inlined({ version: 3, mappings: ';EAIM' })],
    ['a map of a source that has no name', inlined({ version: 3, sources: [null], mappings: ';EAIM' })],
    ['a map on the network', '//# sourceMappingURL=https://maps.test/d.js.map'],
  ])('leave the position of the compiled code with %s', (name, comment) => {
    expect(maps.locate(frame(write(`${name.replaceAll(' ', '-')}.js`, comment)))).toMatch(/^dist\/.*\.js:2:3$/);
  });

  it('of a dependency are not followed: their sources may be named as if they lay in the application', () => {
    const file = join(folder, 'node_modules', 'orm', 'query', 'builder.js');
    mkdirSync(join(file, '..'), { recursive: true });
    writeFileSync(file, `const a = 1;\n  work();\n${inlined(map('../../../src/query/builder.ts'))}`);
    expect(maps.locate(frame(file))).toBe('node_modules/orm/query/builder.js:2:3');
  });

  it('are not read when their mappings are too long, or not at all', () => {
    const file = write('l.js', '//# sourceMappingURL=l.js.map\n');
    const long = { ...map('../src/l.ts'), mappings: `;EAIM${';EAAA'.repeat(1_000)}` };
    writeFileSync(`${file}.map`, JSON.stringify(long));
    expect(new SourceLines(folder, 0).locate(frame(file))).toBe('dist/l.js:2:3');
    expect(new SourceLines(folder, 4_000).locate(frame(file))).toBe('dist/l.js:2:3');
    expect(new SourceLines(folder, 6_000).locate(frame(file))).toBe('src/l.ts:5:7');
  });

  it('can be read where nothing but the class is known: its text is what the sampler’s thread gets', () => {
    const file = write('t.js', inlined(map('../src/t.ts')));
    // eslint-disable-next-line typescript/no-implied-eval
    const Alone = new Function(`return ${SourceLines.toString()}`)() as typeof SourceLines;
    expect(new Alone(folder, MAX_BYTES).locate(frame(file))).toBe('src/t.ts:5:7');
  });

  it('of TypeScript are those that Node knows of its loader, and no file is read', () => {
    const module = process.getBuiltinModule('node:module');
    const file = write('d.ts', inlined(map('../src/of-the-disk.ts')));
    const found = vi.spyOn(module, 'findSourceMap');
    found.mockReturnValue(new module.SourceMap({ ...map('src/d.ts'), file: '', sourcesContent: [], sourceRoot: '' }));
    expect(new SourceLines(folder, 0).locate(frame(file))).toBe('dist/src/d.ts:5:7');
    const loaded = `${pathToFileURL(file).href}?v=1`;
    expect(new SourceLines(folder, 0).locate(frame(loaded))).toBe('dist/src/d.ts:5:7');
    expect(found.mock.calls).toEqual([[file], [loaded]]);
    expect([file, loaded, 'file:///a.ts.js'].map((name) => SourceLines.isTypeScript(name))).toEqual([
      true,
      true,
      false,
    ]);
    found.mockReturnValue(undefined);
    expect(new SourceLines(folder, MAX_BYTES).locate(frame(file))).toBe('dist/d.ts:2:3');
    found.mockRestore();
  });

  it('leave files outside the working directory absolute, and unknown ones as they are', () => {
    expect(new SourceLines(join(folder, 'elsewhere'), MAX_BYTES).locate(frame(write('e.js', '')))).toBe(
      `${folder}/dist/e.js:2:3`,
    );
    expect(maps.locate(frame('node:fs'))).toBe('node:fs:2:3');
    expect(maps.locate({ ...frame(''), file: null })).toBeNull();
  });
});

it('the path of a file is whole where the working directory has been deleted', () => {
  const lines = new SourceLines(null, MAX_BYTES);
  expect(lines.locate(frame('/srv/app/gone.js'))).toBe('/srv/app/gone.js:2:3');
});
