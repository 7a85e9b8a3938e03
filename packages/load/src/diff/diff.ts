import { Allowed, isSafe } from '../allowed.js';
import { Client } from '../client.js';
import { leftOut, otherAnswers } from '../notes.js';
import { Outcomes } from '../outcomes.js';
import { commonOf, textOf, type CommandResult, type Given, type Print } from '../options.js';
import { ms, positive, printable } from '../quantity.js';
import { showProgress } from '../progress.js';
import { baseOf, targetOf } from '../target.js';
import { nameOf, readTraffic, type TrafficRequest } from '../traffic.js';
import { EXIT, UsageError } from '../usage.js';
import { findingsOf } from './findings.js';
import { latencyShift } from './latency.js';
import { planOf } from './plan.js';
import { keyOf, pValueOf, RouteAnswers, type Tally, type TimedAnswer, type Triple } from './route-answers.js';
import { mcNemar } from './statistics.js';

const ROLES = ['primary', 'secondary', 'candidate'] as const;
type Role = (typeof ROLES)[number];

/** Sent before anything is measured: connections, caches and compilers are warm then. */
const WARM_UP = 20;
/** Of what differs, and is not proven yet: how many differences are looked at again, and how often each. */
const LOOKED_AT_AGAIN = 20;
const LOOKS = 20;

/** What the candidate answers differently, and at another speed, than two processes of the running release. */
export async function diff(file: string, options: Given, print: Print): Promise<CommandResult> {
  const { allow, mine, headers, timeoutMs } = commonOf(options);
  const perRoute = Math.ceil(positive(textOf(options, 'requests-per-route'), '--requests-per-route'));
  // Bodies are compared as they are.
  const sent = { ...headers, 'accept-encoding': 'identity' };
  const bases = ROLES.map((role) => baseOf(targetOf(textOf(options, role), `--${role}`, mine), `--${role}`));
  const traffic = await readTraffic(file, new Allowed(allow));
  for (const line of leftOut(traffic)) print(line);
  const clients = bases.map((base) => new Client(base, timeoutMs, sent));
  try {
    const askAll = (request: TrafficRequest): Promise<Triple> => triple(request, clients);
    const plan = planOf(traffic.requests, perRoute);
    for (const request of plan.filter(({ method }) => isSafe(method)).slice(0, WARM_UP))
      refuseSilence(await askAll(request), options);
    const routes = new Map<string, RouteAnswers>();
    const primary = new Outcomes();
    let compared = 0;
    const done = showProgress(() => `${compared} of ${plan.length} compared`);
    for (const request of plan) {
      const name = nameOf(request);
      const route = routes.get(name) ?? new RouteAnswers(name);
      routes.set(name, route);
      const answers = await askAll(request);
      if (compared === 0) refuseSilence(answers, options);
      primary.add({ ...answers.primary, request, index: compared, latencyMs: answers.primary.ms, failed: false });
      route.add(request, answers);
      compared += 1;
    }
    done();
    const all = [...routes.values()];
    refuseNothing(all, primary, print);
    const findings = findingsOf(all, await lookAgain(all, askAll));
    for (const { route, text, example } of findings)
      print(`${printable(route)}  ${text}${example === null ? '' : `, such as ${example}`}`);
    const counted = `${plan.length} requests of ${all.length} ${all.length === 1 ? 'route' : 'routes'}`;
    const differing = new Set(findings.map(({ route }) => route)).size;
    print(
      findings.length === 0
        ? `diff: no difference in ${counted} beyond what the same release differs from itself.`
        : `diff: ${differing} of ${all.length} routes differ, ${findings.length} ${findings.length === 1 ? 'difference' : 'differences'} in ${counted}.`,
    );
    const json = {
      requests: plan.length,
      findings,
      routes: all.map((route) => ({ name: route.name, pairs: route.pairs, latency: latencyShift(route) })),
    };
    const bars = json.routes.map(({ name, latency }) => ({
      name,
      value: latency?.candidateMs ?? NaN,
      text: latency === null ? 'too few answers' : `${ms(latency.primaryMs)} → ${ms(latency.candidateMs)}`,
      isBad: findings.some(({ route }) => route === name),
    }));
    const chart = { title: 'Median of each route, primary → candidate', bars };
    return { exitCode: findings.length === 0 ? EXIT.holds : EXIT.fails, json, chart };
  } finally {
    await Promise.all(clients.map((client) => client.close()));
  }
}

/** One after the other, in an order of chance: whoever comes first finds colder caches. */
async function triple(request: TrafficRequest, clients: readonly Client[]): Promise<Triple> {
  const order = ROLES.map((role, i) => ({ role, client: clients[i]!, at: Math.random() })).toSorted(
    (a, b) => a.at - b.at,
  );
  const answers = {} as Record<Role, TimedAnswer>;
  for (const { role, client } of order) {
    const startedMs = performance.now();
    const answer = await client.send(request, true);
    answers[role] = { ...answer, ms: performance.now() - startedMs };
  }
  return answers;
}

/** @throws UsageError where nobody answers: there is nothing to compare. */
function refuseSilence(answers: Triple, options: Given): void {
  for (const role of ROLES) {
    const { failure } = answers[role];
    if (failure !== null && failure !== 'timeout')
      throw new UsageError(`--${role} ${textOf(options, role)} does not answer: ${failure}`);
  }
}

/** @throws UsageError where no request was served as it was recorded: what is alike then says nothing. */
function refuseNothing(routes: readonly RouteAnswers[], primary: Outcomes, print: Print): void {
  if (routes.every(({ pairs }) => pairs === 0)) throw new UsageError('No request was answered by all three in time.');
  for (const line of otherAnswers({ otherStatus: Object.fromEntries(primary.otherStatus), ...primary.figures() }, true))
    print(line);
  if (primary.refused > primary.answers / 2)
    throw new UsageError(
      `--primary refuses ${primary.refused} of ${primary.answers} requests: there is nothing to compare.`,
    );
}

/** A change in one request of many is rare, and yet no chance: asked again, it is there each time. By itself, on fresh answers. */
async function lookAgain(
  routes: readonly RouteAnswers[],
  askAll: (request: TrafficRequest) => Promise<Triple>,
): Promise<Map<Tally, number>> {
  const open = routes
    .flatMap((route) => [...route.tallies.values()])
    .filter(
      (tally) => tally.candidateAlone > tally.secondaryAlone && pValueOf(tally) > 0.001 && isSafe(tally.example.method),
    )
    .toSorted((a, b) => pValueOf(a) - pValueOf(b))
    .slice(0, LOOKED_AT_AGAIN);
  const looked = new Map<Tally, number>();
  for (const tally of open) {
    const fresh = new RouteAnswers('');
    for (let look = 0; look < LOOKS; look++) fresh.add(tally.example, await askAll(tally.example));
    const { candidateAlone, secondaryAlone } = fresh.tallies.get(keyOf(tally)) ?? {
      candidateAlone: 0,
      secondaryAlone: 0,
    };
    looked.set(tally, mcNemar(candidateAlone, secondaryAlone));
  }
  return looked;
}
