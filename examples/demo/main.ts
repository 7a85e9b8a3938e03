// npm run demo: a small API, real traffic from another process, and what the library saw: requests, event-loop blocks, the
// container's CPU and memory, compression, deferred work and an experiment.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { parseArgs } from 'node:util';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { describeResources, Experiments, PerfService } from 'nestjs-perf';
import { settle } from 'nestjs-perf/testing';
import { DemoModule } from './app.module.js';
import { compressionReport } from './compression.js';
import { receiptsReport } from './receipts.js';
import { routesReport } from './report.js';
import { command, DemoLogger, part, Progress } from './screen.js';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '8' },
    /** Visitors keep coming, until Ctrl+C: time for a look at the page. */
    stay: { type: 'boolean', default: false },
  },
});
const seconds = Number(values.seconds);
if (!(seconds > 0)) throw new Error(`--seconds must be a number above 0, got ${values.seconds}`);

if (!process.env['REDIS_URL']) console.log('No REDIS_URL: work that must survive stays in this process.');

const app = await NestFactory.create<NestFastifyApplication>(DemoModule, new FastifyAdapter(), {
  logger: new DemoLogger({ logLevels: ['log', 'warn', 'error'] }),
});
app.enableShutdownHooks();
await app.listen(0, '127.0.0.1');
const { port } = app.getHttpServer().address() as AddressInfo;
console.log(
  `A NestJS API on http://127.0.0.1:${port}. Its module has \`imports: [PerfModule.forRoot({ dashboard: true })]\`, with a gate for the ` +
    'experiment and a queue; all you see comes from that. The page at the address above shows it live.',
);

part(
  1,
  'Event-loop blocks',
  'Forty visitors call the API. One route computes for 120 ms, and everybody waits: the log says which request, which line, and how to repeat it.',
);
const loadScript = process.argv[1]!.replace(/main\.js$/, 'load.js');
const load = fork(loadScript, [String(port), String(seconds)]);
const progress = new Progress();
load.on('message', ({ sent, answered, leftMs }: { sent: number; answered: number; leftMs: number }) => {
  progress.update(1 - leftMs / (seconds * 1_000), `${answered} of ${sent} requests answered`);
});
const [code] = (await once(load, 'exit')) as [number];
if (code !== 0) throw new Error(`The load process ended with code ${code}.`);
progress.end();

await settle(app);
const snapshot = app.get(PerfService).snapshot();
part(
  2,
  'Requests per route',
  'Latency percentiles, errors and slow requests; 404s and failures included. PerfService.snapshot():',
);
console.log(routesReport(snapshot));

part(3, 'Container CPU and memory', 'Used, of what the container may use; throttling by the kernel.');
console.log(`  ${snapshot.resources === null ? 'not known here' : describeResources(snapshot.resources)}`);

part(
  4,
  'Compression',
  'A feed of 1 MB of JSON: bytes on the wire and what visitors wait, without the module and with it.',
);
console.log(await compressionReport(process.argv[1]!.replace(/main\.js$/, 'compression-client.js')));

part(
  5,
  'Deferred work',
  'Orders whose clients wait for the receipt to be sent, and the same with @DeferWork(SendReceipt): sent after the response.',
);
console.log(await receiptsReport(app, `http://127.0.0.1:${port}`));

part(
  6,
  'Experiment',
  'Is it faster? A gate let half of the users search in a new index. The interval is over users, not requests:',
);
console.log(`  ${app.get(Experiments).report('new_index', { route: 'GET /search/:term' }).text}`);

if (values.stay) {
  console.log(`\nVisitors keep coming, so that the page has something to show. Ctrl+C ends it.`);
  const visitors = fork(loadScript, [String(port), String(365 * 86_400)]);
  visitors.on('message', () => {});
  await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]);
  visitors.kill();
}
await app.close();

console.log(`
Go on with
  ${command('npm i nestjs-perf')}    in your application, and \`imports: [PerfModule.forRoot()]\`; the guides are in docs/README.md
  ${command('npm test')}             here: the tests`);
