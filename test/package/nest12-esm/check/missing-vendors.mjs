// None of the vendors is installed here: the root and the testing kit load, every other entry names the command to run.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';

const { exports } = JSON.parse(readFileSync(new URL('../node_modules/nestjs-perf/package.json', import.meta.url)));
const withoutVendor = ['.', './testing'];
let refused = 0;
for (const subpath of Object.keys(exports)) {
  if (subpath === './package.json') continue;
  const name = subpath.replace('.', 'nestjs-perf');
  const loaded = await import(name).then(
    () => true,
    (error) => {
      assert.match(error.message, /npm install \S+/, `${name}: ${error.message}`);
      return false;
    },
  );
  if (loaded) continue;
  assert.ok(!withoutVendor.includes(subpath), `${name} needs a vendor`);
  refused += 1;
}
console.log(`${refused} entries name the missing vendor`);
