import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

/** Code without comments and strings. */
const codeOf = (file: string): string =>
  readFileSync(new URL(`../../../src/event-loop/${file}`, import.meta.url), 'utf8')
    .replaceAll(/\/\*[^]*?\*\//g, '')
    .replaceAll(/\/\/.*/g, '')
    .replaceAll(/'[^'\n]*'|`[^`]*`/g, "''");

describe('files whose functions run inside the interrupt', () => {
  // The linter forbids what calls a regex; that a regex literal is none of its rules is why this test exists.
  it.each(['probe.ts', 'slots.ts', 'identity.ts', 'beat.ts'])(
    '%s holds no regular expression (and no division)',
    (file) => {
      expect(codeOf(file)).not.toContain('/');
    },
  );

  it.each(['probe.ts', 'slots.ts', 'identity.ts'])(
    '%s imports only what it needs of core and of its own folder',
    (file) => {
      const imports = [
        ...readFileSync(new URL(`../../../src/event-loop/${file}`, import.meta.url), 'utf8').matchAll(
          /from '([^']+)'/g,
        ),
      ];
      const allowed =
        /^(?:\.\.\/core\/request-(?:state|context)\.js|\.\/(?:beat|frame|probe|slots|timing)\.js|node:diagnostics_channel)$/;
      expect(imports.map(([, name]) => name).filter((name) => !allowed.test(name!))).toEqual([]);
      expect(imports.length).toBeGreaterThan(1);
    },
  );
});
