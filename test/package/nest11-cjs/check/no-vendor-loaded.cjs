// Every vendor is installed here, so a load in a `try` would not show as an error: look at what has been loaded.
const assert = require('node:assert/strict');
const { sep } = require('node:path');

const vendors = ['bullmq', 'ioredis', 'prom-client', '@opentelemetry/api', 'statsig-node'];
const loaded = () => {
  const files = Object.keys(require.cache);
  return vendors.filter((vendor) =>
    files.some((file) => file.includes(`${sep}node_modules${sep}${vendor.replace('/', sep)}${sep}`)),
  );
};

async function main() {
  for (const name of ['nestjs-perf', 'nestjs-perf/testing']) {
    require(name);
    await import(name);
    assert.deepEqual(loaded(), [], `${name} loads a vendor`);
  }
  for (const vendor of vendors) require(vendor);
  assert.deepEqual(loaded(), vendors, 'this check cannot see what is loaded');
}

void main();
