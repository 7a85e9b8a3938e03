// `require` and `import` must give one class, in every entry: two would be two injection tokens.
const assert = require('node:assert/strict');
const entries = require('nestjs-perf/package.json').exports;

async function main() {
  const names = Object.keys(entries)
    .filter((subpath) => subpath !== './package.json')
    .map((subpath) => subpath.replace('.', 'nestjs-perf'));
  for (const name of names) {
    const required = require(name);
    const imported = await import(name);
    assert.ok(Object.keys(required).length > 0, `${name} exports nothing`);
    for (const [key, value] of Object.entries(required)) assert.equal(imported[key], value, `${name}: ${key} differs`);
  }
  console.log(`${names.length} entries`);
}

void main();
