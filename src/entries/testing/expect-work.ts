import { randomUUID } from 'node:crypto';
import type { Server } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { INestApplication } from '@nestjs/common';
import { PerfError } from '../../core/perf.error.js';
import { within } from '../../core/within.js';
import type { EventLoop } from '../../event-loop/event-loop.js';
import { EVENT_LOOP } from '../../event-loop/event-loop.feature.js';
import { PerfRuntime } from '../../perf.runtime.js';
import { UpstreamCalls } from '../../ports/upstream-calls.js';
import { PerfApplication } from '../../request/application.js';
import type { RequestState } from '../../request/request-state.js';
import { checkExpected } from './expected-work.js';
import { send, type WorkRequest } from './send.js';
import { compareWork, type ExpectedWork, type SeenWork } from './work-table.js';

/** After the response a request of a running application ends at once. */
const END_DEADLINE_MS = 10_000;
const SAMPLER_DEADLINE_MS = 5_000;

/**
 * Sends one request to the application, waits until it has settled, and compares what the request has caused with what is allowed:
 * calls by target, bytes of the body, deferred work, blocked time, and the status (below 400 unless `status` is given).
 * An application that does not listen yet listens on a free port from now on.
 * @returns what was seen
 * @throws an error with a table of what was expected and what was seen; PERF_ERR_OFF where a feature that must count is off; PERF_ERR_OPTION
 * @example await expectWork(app, { get: '/orders/7' }, { upstream: { 'sql db:5432/shop': { atMost: 3 } }, bytes: { atMost: 200_000 } })
 */
export async function expectWork(
  app: INestApplication,
  request: WorkRequest,
  expected: ExpectedWork = {},
): Promise<SeenWork> {
  checkExpected(expected);
  const { requests } = app.get(PerfApplication, { strict: false });
  const upstream = app.get(UpstreamCalls, { strict: false }) as UpstreamCalls | null;
  const server = app.getHttpServer() as Server;
  await listening(app, server);
  const loop = app.get(EVENT_LOOP, { strict: false }) as EventLoop | null;
  if (expected.blockedMs !== undefined && loop === null) throw off('blocked time', 'eventLoop');
  if (expected.blockedMs !== undefined) await untilSampled(loop!);
  const id = `expect-work-${randomUUID()}`;
  const before = upstream?.countUnplaced();
  const { state, answer } = await follow(requests, id, () => send(server, request, id));
  await app.get(PerfRuntime, { strict: false }).settle();
  if (expected.upstream !== undefined && state.timing === null) throw off('upstream calls', 'upstream');
  // In a worker thread of a test runner no sampler runs, so blocks have no request: blocks during the request count as its own.
  const seen: SeenWork = {
    ...answer,
    blockedMs: loop?.isSampled === true ? state.blockedMs : state.blockedMs + state.delayedMs,
    upstream: state.timing?.upstream ?? [],
    unplacedCalls: state.timing?.time.unplacedCalls ?? 0,
    deferred: [...(state.work?.committed ?? [])],
  };
  const after = upstream?.countUnplaced() ?? new Map<string, number>();
  const unplaced = new Map([...after].map(([name, calls]) => [name, calls - (before?.get(name) ?? 0)]));
  const complaint = compareWork(`${answer.method} ${answer.path}`, expected, seen, unplaced);
  if (complaint !== null) throw Object.assign(new Error(complaint), { name: 'ExpectedWorkError' });
  return seen;
}

/** The servers that listen because of a contract: several may be checked at once. */
const opened = new WeakMap<Server, Promise<unknown>>();

async function listening(app: INestApplication, server: Server): Promise<void> {
  if (server.listening) return;
  const opening = opened.get(server) ?? app.listen(0, '127.0.0.1');
  opened.set(server, opening);
  await opening;
}

/** A thread needs a moment to start, and where none can run there is nothing to wait for. */
async function untilSampled(loop: EventLoop): Promise<void> {
  const endMs = performance.now() + SAMPLER_DEADLINE_MS;
  while (loop.sampler.worker.running && !loop.isSampled && performance.now() < endMs) await delay(5);
}

/** Runs `work`, which makes a request of this id, and resolves when that request has ended too. */
async function follow<T>(
  requests: PerfApplication['requests'],
  id: string,
  work: () => Promise<T>,
): Promise<{ state: RequestState; answer: T }> {
  let ended!: (state: RequestState) => void;
  const end = new Promise<RequestState>((resolve) => (ended = resolve));
  const step = (state: RequestState): void => {
    if (state.id === id) ended(state);
  };
  const { pipeline } = requests;
  requests.pipeline = { ...pipeline, ended: [...pipeline.ended, step] };
  try {
    const answer = await work();
    if (await within(END_DEADLINE_MS, () => end)) return { state: await end, answer };
  } finally {
    // Another call may have added a step of its own meanwhile.
    const { pipeline: now } = requests;
    requests.pipeline = { ...now, ended: now.ended.filter((one) => one !== step) };
  }
  throw new Error(
    `expectWork(): the request was answered, but PerfModule has not seen it end within ${END_DEADLINE_MS} ms. ` +
      'Its path may be one of the module itself, or the server is not the one of this application.',
  );
}

const off = (what: string, option: string): PerfError =>
  new PerfError(
    'PERF_ERR_OFF',
    `expectWork() is to count ${what}, and \`${option}\` is off in this application. Switch it on for the tests, ` +
      'and take away `enabled: false`, NESTJS_PERF=off and its name in NESTJS_PERF_OFF.',
  );
