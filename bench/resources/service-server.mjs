// The small API with everything on. Times each turn of the resources feature's timers, and beside them, once a second each:
// a whole sample, a `readFileSync` of cpu.stat, and another as control.
import { existsSync, readFileSync } from 'node:fs';
import { PerfModule, ResourceSampler } from '../../dist/index.js';
import { serveApi } from '../overhead/application.mjs';

const cpuStat = ['/sys/fs/cgroup/cpu/cpu.stat', '/sys/fs/cgroup/cpu.stat'].find((path) => existsSync(path));
const HOUR_S = 3_600;
/** Times per name, microseconds; null while nothing is recorded. */
let times = null;

function timed(name, call) {
  const startedMs = performance.now();
  call();
  times?.[name].push((performance.now() - startedMs) * 1_000);
}

const { setInterval } = globalThis;
const ours = [];
globalThis.setInterval = (callback, delayMs, ...rest) => {
  const caller = new Error().stack.split('\n')[2] ?? '';
  if (!/[/\\]resources[/\\]/.test(caller)) return setInterval(callback, delayMs, ...rest);
  const name = ours.length === 0 ? 'record' : 'watch';
  ours.push(delayMs);
  return setInterval(() => timed(name, callback), delayMs, ...rest);
};

await serveApi({
  imports: [PerfModule.forRoot()],
  check(app) {
    // With a memory limit it watches each second.
    if (!['10000,5000', '10000,1000'].includes(ours.join()))
      throw new Error(`The resources feature has other timers now: ${ours.join()}.`);
    const sampler = app.get(ResourceSampler);
    // An hour's samples: V8 compiles by the number of calls, and a server runs for longer than this benchmark.
    for (let second = 0; second < HOUR_S; second++) sampler.sample();
    const calls = [
      ['sample', () => sampler.sample()],
      ['read', () => readFileSync(cpuStat, 'utf8')],
      ['readAgain', () => readFileSync(cpuStat, 'utf8')],
    ];
    let turn = 0;
    // Every other second in reverse: what was called a moment ago has warmer caches, and each must gain by that as often.
    setInterval(() => {
      const second = Math.floor(turn / calls.length);
      const at = turn++ % calls.length;
      timed(...calls[second % 2 === 0 ? at : calls.length - 1 - at]);
    }, 1_000 / calls.length);
  },
  handlers: {
    async record({ seconds }) {
      times = { watch: [], record: [], sample: [], read: [], readAgain: [] };
      await new Promise((resolve) => setTimeout(resolve, seconds * 1_000));
      return times;
    },
  },
});
