import { Agent, type Server } from 'node:http';
import type { INestApplication } from '@nestjs/common';
import type { FastifyInstance } from 'fastify';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { adapters, type Adapter } from '../../fixtures/app.js';
import { ask, LATE, type Answer } from '../../fixtures/exchanges/client.js';
import { differenceOf } from '../../fixtures/exchanges/difference.js';
import { planOf, type Plan } from '../../fixtures/exchanges/plan.js';
import { serveExchanges, type ExchangeServer } from '../../fixtures/exchanges/server.js';
import { uncaughtDuring } from '../../fixtures/uncaught.js';

type Patched = Record<'writeHead' | 'write' | 'end' | 'json', (...parameters: unknown[]) => unknown> & {
  setHeader(name: string, value: string): void;
};
type Middleware = (request: unknown, response: Patched, next: () => void) => void;

/** As morgan, express-session and their like do it: they hear of each call, and add to the head when it is written. */
const patching: Middleware = (_request, response, next) => {
  const { writeHead, write, end, json } = response;
  let heard = false;
  response.writeHead = function (...parameters) {
    if (!heard) this.setHeader('x-heard', 'yes');
    heard = true;
    return writeHead.apply(this, parameters);
  };
  response.write = function (...parameters) {
    return write.apply(this, parameters);
  };
  response.end = function (...parameters) {
    return end.apply(this, parameters);
  };
  response.json = function (...parameters) {
    return json.apply(this, parameters);
  };
  next();
};
/** Without stacks in the pages of Express's own errors. */
const production = (app: INestApplication): void => {
  (app.getHttpAdapter().getInstance() as { set(setting: string, value: string): void }).set('env', 'production');
};

/** A Fastify with any hook of this kind tells of some errors later, and so otherwise, than one without. */
const hooked = (app: INestApplication): void => {
  const fastify = app.getHttpAdapter().getInstance() as FastifyInstance;
  fastify.addHook('onSend', (_request, _reply, payload, done) => done(null, payload));
};

interface Case {
  readonly adapter: Adapter | 'plain';
  readonly what: string;
  readonly ways: readonly Plan['way'][];
  readonly main: (app: INestApplication) => void;
  readonly inner?: Middleware;
}
const cases: Case[] = adapters.map((adapter) => ({
  adapter,
  what: 'answers of the framework and of Nest',
  ways: ['framework', 'nest'],
  main: adapter === 'fastify' ? hooked : production,
}));
cases.push({ adapter: 'express', what: "answers by Node's own functions", ways: ['node'], main: production });
cases.push({ adapter: 'fastify', what: "answers by Node's own functions", ways: ['node'], main: () => {} });
cases.push({
  adapter: 'plain',
  what: "answers of Nest and by Node's own functions",
  ways: ['node', 'nest'],
  main: () => {},
});
cases.push({
  adapter: 'express',
  what: "answers before a module's middleware that replaces a response's functions",
  ways: ['node', 'framework', 'nest'],
  main: production,
  inner: patching,
});
cases.push({
  adapter: 'express',
  what: "answers behind middleware that replaces a response's functions",
  ways: ['node', 'framework', 'nest'],
  main: (app) => {
    production(app);
    app.use(patching);
  },
});

/** Of each case. */
const COUNT = process.env['PERF_LONG'] === undefined ? 30 : 6_000;

/** Nobody answers where a framework meets a reason phrase that Node refuses when it is too late for another answer. */
const hangsBare = ({ steps }: Plan, adapter: Adapter | 'plain'): boolean =>
  steps.some((step) => step.do === 'status' && /[^\x20-\xff]/.test(step.reason ?? '')) &&
  (adapter === 'fastify' || steps.some((step) => step.do === 'stream'));

/** The plain adapter counts no body: one of another length than the handler has said breaks the connection. */
const breaksBare = ({ steps }: Plan, adapter: Adapter | 'plain'): boolean =>
  adapter === 'plain' &&
  steps.some((step) => step.do === 'return') &&
  steps.some((step) => step.do === 'header' && step.name === 'content-length');

interface Outcome {
  readonly answer: Answer;
  readonly next: Answer;
  readonly seen: string;
  /** Errors that nobody caught: each would have ended the process. */
  readonly fatal: number;
}

async function exchange(
  { port, seen }: ExchangeServer,
  agent: Agent,
  plan: Plan,
  seed: string,
  patienceMs: number,
): Promise<Outcome> {
  const path = plan.way === 'nest' ? '/returned' : '/direct';
  const headers = { ...plan.client.headers, 'x-seed': seed };
  const answers: Answer[] = [];
  const fatal = await uncaughtDuring(async () => {
    answers.push(await ask(agent, port, path, { ...plan.client, headers }, patienceMs));
    // On the same connection: what is left over from the answer would be taken for this one.
    answers.push(await ask(agent, port, '/ok', { method: 'GET', headers: {} }, patienceMs));
  });
  return { answer: answers[0]!, next: answers[1]!, seen: JSON.stringify(seen.get(seed)), fatal: fatal.length };
}

function difference(bare: Outcome, ours: Outcome, plan: Plan): string | null {
  const { body, error } = ours.next;
  if (body.toString() !== 'ok') return `the next answer is ${error ?? body.toString()}`;
  if (ours.fatal > bare.fatal) return 'the process would have died';
  if (bare.fatal > 0) return null;
  const inAnswer = differenceOf(bare.answer, ours.answer, plan.client);
  if (inAnswer !== null) return inAnswer;
  return ours.seen === bare.seen ? null : `the application sees ${ours.seen}, not ${bare.seen}`;
}

describe.each(cases)('$what on $adapter', ({ adapter, ways, main, inner }) => {
  let bare: ExchangeServer;
  let ours: ExchangeServer;
  beforeAll(async () => {
    // Express writes there what it answers 500 to.
    vi.spyOn(console, 'error').mockImplementation(() => {});
    bare = await serveExchanges({ adapter, withModule: false, ways, main, inner });
    ours = await serveExchanges({ adapter, withModule: true, ways, main, inner });
  });
  afterAll(async () => {
    vi.restoreAllMocks();
    for (const { app } of [bare, ours]) {
      (app.getHttpServer() as Server).closeAllConnections();
      await app.close();
    }
  });

  it(`are what they are without the module, but for what the guide announces: ${COUNT} exchanges`, async () => {
    const [bareAgent, ourAgent] = [
      new Agent({ keepAlive: true, maxSockets: 1 }),
      new Agent({ keepAlive: true, maxSockets: 1 }),
    ];
    const differences: string[] = [];
    let encoded = 0;
    let compared = 0;
    for (let seed = 1; compared < COUNT; seed++) {
      const plan = planOf(seed, ways);
      if (hangsBare(plan, adapter) || breaksBare(plan, adapter)) continue;
      compared += 1;
      const both = async (patienceMs: number): Promise<{ found: string | null; after: Outcome; late: boolean }> => {
        const before = await exchange(bare, bareAgent, plan, String(seed), patienceMs);
        const after = await exchange(ours, ourAgent, plan, String(seed), patienceMs);
        const late = [before, after].some(({ answer, next }) => answer.error === LATE || next.error === LATE);
        return { found: difference(before, after, plan), after, late };
      };
      let { found, after, late } = await both(500);
      // A busy machine may answer one of the two too late.
      if (found !== null && late) ({ found, after } = await both(5_000));
      if (found !== null) differences.push(`${seed}: ${found} ${JSON.stringify(plan)}`);
      if (after.answer.headers.has('content-encoding')) encoded += 1;
    }
    bareAgent.destroy();
    ourAgent.destroy();
    expect(differences.slice(0, 20)).toEqual([]);
    expect(encoded).toBeGreaterThan(COUNT / 20);
  }, 300_000);
});
