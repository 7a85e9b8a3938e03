import { Allowed, isSafe } from '../allowed.js';
import { Client } from '../client.js';
import { otherAnswers } from '../judgement.js';
import { Outcomes } from '../outcomes.js';
import { readCommon, readText, type CommandResult, type Given } from '../options.js';
import { positive, printable } from '../quantity.js';
import { showProgress } from '../progress.js';
import { readBase, checkTarget } from '../target.js';
import { leftOut, nameRoute, readTraffic, type TrafficRequest } from '../traffic.js';
import { EXIT, UsageError } from '../usage.js';
import { listFindings } from './findings.js';
import { latencyShift } from './latency.js';
import { planRequests } from './plan.js';
import {
  buildKey,
  computePValue,
  ROLES,
  RouteAnswers,
  type Role,
  type Tally,
  type TimedAnswer,
  type Triple,
} from './route-answers.js';
import { Silence } from './silence.js';

/** Sent before anything is measured: connections, caches and compilers are warm then. */
const WARM_UP = 20;
/** The interval of a latency is that of all pairs of its differences: 2,000 make two million, 16 MB. */
const MAX_PER_ROUTE = 2_000;
/** Limits of the second look at differences that are not proven yet: how many, and how often each. */
const LOOKED_AT_AGAIN = 20;
const LOOKS = 20;

/** Compares the candidate's answers and latency with those of two processes of the running release. */
export async function diff(file: string, options: Given): Promise<CommandResult> {
  const { allow, mine, headers, timeoutMs } = readCommon(options);
  const perRoute = parsePerRoute(readText(options, 'requests-per-route'));
  // Bodies are compared as they are.
  const sent = { ...headers, 'accept-encoding': 'identity' };
  const bases = ROLES.map((role) => readBase(checkTarget(readText(options, role), `--${role}`, mine), `--${role}`));
  const traffic = await readTraffic(file, new Allowed(allow));
  for (const line of leftOut(traffic)) console.log(line);
  const clients = bases.map((base) => new Client(base, timeoutMs, sent));
  try {
    const askAll = (request: TrafficRequest): Promise<Triple> => triple(request, clients);
    const plan = planRequests(traffic.requests, perRoute);
    const named = (role: Role): string => `--${role} ${readText(options, role)}`;
    const warmUp = new Silence(named);
    for (const request of plan.filter(({ method }) => isSafe(method)).slice(0, WARM_UP))
      warmUp.add(await askAll(request));
    warmUp.refuseNobody();
    const silence = new Silence(named);
    const routes = new Map<string, RouteAnswers>();
    const primary = new Outcomes();
    let asked = 0;
    const done = showProgress(() => `${asked} of ${plan.length} asked`);
    for (const request of plan) {
      const name = nameRoute(request);
      const route = routes.get(name) ?? new RouteAnswers(name);
      routes.set(name, route);
      const answers = await askAll(request);
      silence.add(answers);
      primary.add({ ...answers.primary, request, index: asked, latencyMs: answers.primary.ms, failed: false });
      route.add(request, answers);
      asked += 1;
    }
    done();
    silence.refuseNoMeasure();
    const all = [...routes.values()];
    refuseNothing(primary);
    const again = await lookAgain(all, askAll);
    const findings = listFindings(all, again);
    for (const { route, text, example } of findings)
      console.log(`${printable(route)}  ${text}${example === null ? '' : `, such as ${example}`}`);
    const differing = new Set(findings.map(({ route }) => route));
    const isCompared = ({ name, obstacle }: RouteAnswers): boolean => obstacle === null || differing.has(name);
    const routesCompared = all.filter(isCompared);
    for (const route of all)
      if (!isCompared(route)) console.log(`${printable(route.name)}  is not compared: ${route.obstacle}.`);
    if (routesCompared.length === 0) throw new UsageError('There is nothing to compare: no route is left.');
    const compared = routesCompared.reduce((sum, { pairs }) => sum + pairs, 0);
    const counted = `${compared} requests of ${routesCompared.length} ${routesCompared.length === 1 ? 'route' : 'routes'}`;
    console.log(
      findings.length === 0
        ? `diff: no difference in ${counted} beyond what the same release differs from itself.`
        : `diff: ${differing.size} of ${routesCompared.length} routes differ, ${findings.length} ${findings.length === 1 ? 'difference' : 'differences'} in ${counted}.`,
    );
    const figures = {
      requests: compared,
      findings,
      routes: all.map((route) => ({
        name: route.name,
        pairs: route.pairs,
        notCompared: isCompared(route) ? null : route.obstacle,
        latency: latencyShift(route),
      })),
    };
    return { exitCode: findings.length === 0 ? EXIT.holds : EXIT.fails, figures };
  } finally {
    await Promise.all(clients.map((client) => client.close()));
  }
}

/** @throws UsageError for what would need gigabytes */
function parsePerRoute(text: string): number {
  const perRoute = Math.ceil(positive(text, '--requests-per-route'));
  if (perRoute > MAX_PER_ROUTE)
    throw new UsageError(
      `--requests-per-route must be at most ${MAX_PER_ROUTE}: more tell nothing new, got "${text}".`,
    );
  return perRoute;
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

/** @throws UsageError where no request was served as it was recorded: what is alike then says nothing. */
function refuseNothing(primary: Outcomes): void {
  for (const line of otherAnswers({ otherStatus: Object.fromEntries(primary.otherStatus), ...primary.figures() }, true))
    console.log(line);
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
    .filter((tally) => tally.raw > tally.noise && computePValue(tally) > 0.001 && isSafe(tally.example.method))
    .toSorted((a, b) => computePValue(a) - computePValue(b))
    .slice(0, LOOKED_AT_AGAIN);
  const looked = new Map<Tally, number>();
  for (const tally of open) {
    const fresh = new RouteAnswers('');
    for (let look = 0; look < LOOKS; look++) fresh.add(tally.example, await askAll(tally.example));
    const seen = fresh.tallies.get(buildKey(tally));
    looked.set(tally, seen === undefined ? 1 : computePValue(seen));
  }
  return looked;
}
