// None of the vendors is installed here: the root and the testing kit load; every other entry names the command to run, when it is
// imported or when an application with its sink starts.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { NestFactory } from '@nestjs/core';
import { PerfModule } from 'nestjs-perf';

const { exports } = JSON.parse(readFileSync(new URL('../node_modules/nestjs-perf/package.json', import.meta.url)));
const withoutVendor = ['.', './testing'];
/** What starts an entry's vendor, where its import does not. `statsigSink` has none of its own: the client it is given is one. */
const sinkOf = {
  // An extension loads its vendor when the application boots.
  './cache': ({ cache }) => ({ start: () => boot(cache()) }),
  './redis': ({ redisCache }) => ({ start: () => redisCache({ connection: {} }).open({}) }),
  './prometheus': ({ prometheusSink }) => prometheusSink(),
  './opentelemetry': ({ openTelemetrySink }) => openTelemetrySink(),
  './resilience': ({ resilience }) => ({ start: () => boot(resilience({ upstreams: { api: { deadlineMs: 1 } } })) }),
};
function boot(extension) {
  const module = { module: class {}, imports: [PerfModule.forRoot({ extensions: [extension] })] };
  return NestFactory.createApplicationContext(module, { logger: false, abortOnError: false });
}
const refusal = (error) => {
  assert.match(error.message, /npm install \S+/, error.message);
  return 'refused';
};

let refused = 0;
for (const subpath of Object.keys(exports)) {
  if (subpath === './package.json') continue;
  const loaded = await import(subpath.replace('.', 'nestjs-perf')).catch(refusal);
  const started = loaded === 'refused' ? loaded : await sinkOf[subpath]?.(loaded).start({}).catch(refusal);
  if (started === 'refused') refused += 1;
  assert.ok(started !== 'refused' || !withoutVendor.includes(subpath), `${subpath} needs a vendor`);
  assert.ok(started === 'refused' || !(subpath in sinkOf), `${subpath} starts without its vendor`);
}
console.log(`${refused} entries name the missing vendor`);
