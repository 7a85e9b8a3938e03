import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const folder = new URL('../../../../src/event-loop/interrupt/', import.meta.url);
const files = readdirSync(folder);

/** Code without comments and strings. */
const codeOf = (file: string): string =>
  readFileSync(new URL(file, folder), 'utf8')
    .replaceAll(/\/\*[^]*?\*\//g, '')
    .replaceAll(/\/\/.*/g, '')
    .replaceAll(/'[^'\n]*'|`[^`]*`/g, "''");

describe('files whose functions run inside the interrupt', () => {
  // The linter forbids what calls a regex; that a regex literal is none of its rules is why this test exists.
  it.each([...files, '../beat.ts'])('%s holds no regular expression (and no division)', (file) => {
    expect(codeOf(file)).not.toContain('/');
  });

  it.each(files)('%s imports only what it needs of the request and of its own feature', (file) => {
    const imports = [...readFileSync(new URL(file, folder), 'utf8').matchAll(/from '([^']+)'/g)];
    const allowed = /^(?:\.\.\/\.\.\/request\/request-state\.js|\.\.\/(?:beat|sample)\.js|node:(?:perf_hooks|vm))$/;
    expect(imports.map(([, name]) => name).filter((name) => !allowed.test(name!))).toEqual([]);
    expect(imports.length).toBeGreaterThan(0);
  });
});
