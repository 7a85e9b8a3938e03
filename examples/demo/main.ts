// npm run demo: a small API, real traffic from another process, and what the library saw.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { parseArgs } from 'node:util';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { describeResources, PerfService } from 'nestjs-perf';
import { settle } from 'nestjs-perf/testing';
import { DemoModule } from './app.module.js';
import { runExperiment } from '../static-gate/run.js';
import { compressionReport } from './compression.js';
import { receiptsReport } from './receipts.js';
import { routesReport } from './report.js';

const { values } = parseArgs({
  options: { seconds: { type: 'string', default: '8' }, keep: { type: 'boolean', default: false } },
});
const seconds = Number(values.seconds);
if (!(seconds > 0)) throw new Error(`--seconds must be a number above 0, got ${values.seconds}`);

const app = await NestFactory.create<NestFastifyApplication>(DemoModule, new FastifyAdapter(), {
  logger: ['warn', 'error'],
});
app.enableShutdownHooks();
await app.listen(0, '127.0.0.1');
const { port } = app.getHttpServer().address() as AddressInfo;
console.log(
  `The demo API listens on http://127.0.0.1:${port}; its module is \`imports: [PerfModule.forRoot()]\` and nothing else.\n`,
);

const loadScript = process.argv[1]!.replace(/main\.js$/, 'load.js');
const load = fork(loadScript, [String(port), String(seconds)]);
let progress = '';
load.on('message', ({ sent, answered, leftMs }: { sent: number; answered: number; leftMs: number }) => {
  const done = Math.round(20 * Math.min(1, 1 - leftMs / (seconds * 1_000)));
  progress = `  ${'█'.repeat(done)}${'░'.repeat(20 - done)} ${answered} of ${sent} requests answered`;
  if (process.stdout.isTTY) process.stdout.write(`\r${progress}`);
});
const [code] = (await once(load, 'exit')) as [number];
if (code !== 0) throw new Error(`The load process ended with code ${code}.`);

if (!process.stdout.isTTY) console.log(progress);

await settle(app);
console.log(`\n\nWhat PerfService.snapshot() knows after ${seconds} s:\n`);
const snapshot = app.get(PerfService).snapshot();
console.log(routesReport(snapshot));
if (snapshot.resources !== null) console.log(`\nThe container: ${describeResources(snapshot.resources)}.`);

console.log('\nThe feed, 1 MB of JSON, with and without:\n');
console.log(await compressionReport(process.argv[1]!.replace(/main\.js$/, 'compression-client.js')));

console.log('\nIs it faster? A gate let half of the users skip a cleanup:\n');
console.log(`  ${(await runExperiment(3)).text}`);

console.log('\nOrders whose receipt the client waits for, and whose receipt is deferred:\n');
console.log(await receiptsReport(app, `http://127.0.0.1:${port}`));

if (values.keep) {
  console.log(
    `\nStill running. Try:\n  curl -i http://127.0.0.1:${port}/flights/NPF1001\n  curl -i http://127.0.0.1:${port}/search/rare-1\nCtrl+C ends it.`,
  );
} else {
  await app.close();
}
