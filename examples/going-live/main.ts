// npm run example -- going-live [--seconds 4]: an API, its live traffic in a recording, a new release that is half as fast: what
// answers differently, and what each of them can take. Two releases are three processes: one runs twice, to know what is noise.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Release } from './release.js';

const { values } = parseArgs({ options: { seconds: { type: 'string', default: '4' } } });
const hold = `${values.seconds}s`;
const directory = mkdtempSync(join(tmpdir(), 'going-live-'));
const [primary, secondary, candidate] = await Promise.all(
  [1, 1, 2].map((slowness) => Release.start(slowness, directory)),
);

/** Ten visitors, each with a session of their own. */
async function visit(url: string): Promise<void> {
  const visitor = async (name: number): Promise<void> => {
    const headers = {
      'x-visitor': `visitor ${name}`,
      authorization: 'Bearer secret',
      'content-type': 'application/json',
    };
    for (let i = 0; i < 10; i++) {
      for (const path of ['flights/NPF1', 'flights/NPF2', `search/ils-${i}?token=secret`])
        await (await fetch(`${url}/${path}`, { headers })).arrayBuffer();
      const body = JSON.stringify({ item: 'headset', password: 'secret' });
      await (await fetch(`${url}/orders`, { method: 'POST', headers, body })).arrayBuffer();
      await delay(20);
    }
  };
  await Promise.all(Array.from({ length: 10 }, (_, name) => visitor(name)));
}

/** As on a command line: `npx nestjs-perf-load …`. */
async function load(...args: string[]): Promise<void> {
  const shown = args.map((argument) => (argument.includes(' ') ? `'${argument}'` : argument)).join(' ');
  console.log(`\n$ npx nestjs-perf-load ${shown.replaceAll(directory, '.')}`);
  const child = spawn('node_modules/.bin/nestjs-perf-load', args, { stdio: 'inherit' });
  const [code] = (await once(child, 'close')) as [number];
  console.log(`exit code ${code}`);
}

primary!.record();
await visit(primary!.url);
const { file, requests } = await primary!.recorded();
console.log(`Recorded ${requests} requests in ${basename(file)}.`);

const releases = ['--primary', primary!.url, '--secondary', secondary!.url, '--candidate', candidate!.url];
await load('diff', file, ...releases, '--requests-per-route', '40');
const steps = [
  '--from',
  file,
  '--start',
  '40',
  '--steps',
  '1,2,4',
  '--hold',
  hold,
  '--rest',
  '1s',
  '--gate',
  'p95<150ms errors<0.1%',
];
const view = ['--allow', 'POST /orders', '--snapshot-header', 'authorization: Bearer ops'];
for (const release of [primary!, candidate!]) await load('ramp', release.url, ...steps, ...view);

await Promise.all([primary!, secondary!, candidate!].map((release) => release.stop()));
rmSync(directory, { recursive: true });
