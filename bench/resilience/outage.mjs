// One policy in one outage: 100 calls a second before it, in it and after it; where our own loop is blocked, 20 at once each second.
// Prints one line of JSON.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { BREAKERS } from '../peers/breakers.mjs';

const [name, outage, seconds] = process.argv.slice(2);
const DEADLINE_MS = 300;
const [everyMs, atOnce] = outage === 'blocked' ? [1_000, 20] : [10, 1];
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const file = new URL('upstream.mjs', import.meta.url);
const start = async (port) => {
  const child = fork(file, [String(port)]);
  return { child, port: (await once(child, 'message'))[0] };
};

let upstream = await start(0);
let sent = 0;
const ask = async (signal) => {
  sent += 1;
  const response = await fetch(`http://127.0.0.1:${upstream.port}/`, { signal });
  return response.json();
};
const policy = await BREAKERS[name](ask, { deadlineMs: DEADLINE_MS, openMs: 1_000, retries: 2 });

async function call() {
  const startedMs = performance.now();
  const ok = await policy.call().then(
    () => true,
    () => false,
  );
  return { ok, startedMs, endedMs: performance.now() };
}
async function load(forMs, between = () => {}) {
  const calls = [];
  const startedMs = performance.now();
  const sentBefore = sent;
  for (let due = startedMs; due < startedMs + forMs; due += everyMs) {
    if (performance.now() < due) await pause(due - performance.now());
    for (let i = 0; i < atOnce; i++) calls.push(call());
    between(calls.length);
  }
  const ended = await Promise.all(calls);
  const ms = ended.map((one) => one.endedMs - one.startedMs).sort((a, b) => a - b);
  const at = (share) => Math.round(ms[Math.min(ms.length - 1, Math.floor(ms.length * share))]);
  return {
    ended,
    asked: ended.length,
    sent: sent - sentBefore,
    failed: ended.filter(({ ok }) => !ok).length,
    p50: at(0.5),
    p99: at(0.99),
    max: at(1),
  };
}
function block(ms) {
  const untilMs = performance.now() + ms;
  while (performance.now() < untilMs);
}

const OUTAGES = {
  killed: {
    begin: () => upstream.child.kill('SIGKILL'),
    end: async () => void (upstream = await start(upstream.port)),
  },
  stalled: { begin: () => upstream.child.kill('SIGSTOP'), end: () => upstream.child.kill('SIGCONT') },
  slow: {
    begin: () => upstream.child.send({ afterMs: 200, broken: false }),
    end: () => upstream.child.send({ afterMs: 20, broken: false }),
  },
  flapping: {
    begin: () => {},
    between: (n) => void (n % 50 === 0 && upstream.child.send({ afterMs: 20, broken: n % 100 === 0 })),
    end: () => upstream.child.send({ afterMs: 20, broken: false }),
  },
  // As handlers do: in the poll phase, when something has come from a socket.
  blocked: {
    begin: () => {},
    between: () => void fetch(`http://127.0.0.1:${upstream.port}/now`).then(() => block(400)),
    end: () => {},
  },
};
const { begin, between, end } = OUTAGES[outage];
await load(1_000);
await begin();
const during = await load(Number(seconds) * 1_000, between);
const openedDuring = policy.opened();
await end();
const wellMs = performance.now();
const after = await load(4_000);
// The first of twenty calls in a row that were answered.
const firstWell = after.ended.findIndex(
  (_one, i) => i + 20 <= after.asked && after.ended.slice(i, i + 20).every(({ ok }) => ok),
);
const recoveryMs = firstWell === -1 ? null : Math.round(after.ended[firstWell].endedMs - wellMs);
const { asked, failed, p50, p99, max } = during;
const amplification = Number((during.sent / asked).toFixed(2));
console.log(
  JSON.stringify({
    outage,
    policy: name,
    asked,
    failed,
    opened: openedDuring,
    amplification,
    p50,
    p99,
    max,
    recoveryMs,
  }),
);
upstream.child.kill('SIGKILL');
await policy.close?.();
process.exit();
