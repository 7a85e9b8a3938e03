// `require` and `import` must give one class: two would be two injection tokens.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
for (const name of ['nestjs-perf', 'nestjs-perf/testing']) {
  const [imported, required] = [await import(name), require(name)];
  assert.ok(Object.keys(required).length > 0, `${name} exports nothing`);
  for (const [key, value] of Object.entries(required)) assert.equal(imported[key], value, `${name}: ${key} differs`);
}
