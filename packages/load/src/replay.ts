import { Allowed } from './allowed.js';
import { Client, type Answer } from './client.js';
import { sum } from './counts.js';
import { Gate } from './gate.js';
import { formatColumns, listErrors, judged, otherAnswers, describeOutcome } from './judgement.js';
import { runOpenLoop } from './open-loop.js';
import { Outcomes } from './outcomes.js';
import { readCommon, readText, type CommandResult, type Given } from './options.js';
import { positive, printable } from './quantity.js';
import { readBase, checkTarget } from './target.js';
import { leftOut, nameRoute, readTraffic, type TrafficRequest } from './traffic.js';
import { warmUp } from './warm-up.js';
import { EXIT } from './usage.js';

const NAME_WIDTH = 28;

/** A recording again: each request at its time, `speed` times as fast, and each session in its order. */
export async function replay(file: string, options: Given): Promise<CommandResult> {
  const { allow, mine, headers, timeoutMs } = readCommon(options);
  const base = readBase(checkTarget(readText(options, 'target'), '--target', mine), '--target');
  const speed = positive(readText(options, 'speed'), '--speed');
  const gate = options['gate'] === undefined ? null : new Gate(readText(options, 'gate'));
  const traffic = await readTraffic(file, new Allowed(allow));
  for (const line of leftOut(traffic)) console.log(line);
  const { requests } = traffic;
  const client = new Client(base, timeoutMs, headers);
  const routes = new Map<string, Outcomes>();
  try {
    await warmUp();
    const load = await runOpenLoop({
      offsetsMs: Float64Array.from(requests, ({ atMs }) => (atMs - requests[0]!.atMs) / speed),
      requestAt: (index) => requests[index]!,
      send: inSessions((request) => client.send(request)),
      ended(outcome) {
        const name = nameRoute(outcome.request);
        const route = routes.get(name) ?? new Outcomes();
        routes.set(name, route);
        route.add(outcome);
      },
    });
    const judgement = judged(load, gate);
    const { outcome } = judgement;
    for (const line of otherAnswers(judgement, true)) console.log(line);
    const byRoute = [...routes]
      .map(([name, outcomes]) => ({ name, errors: sum(outcomes.failures.values()), ...outcomes.figures() }))
      .toSorted((a, b) => b.requests - a.requests);
    for (const route of byRoute) console.log(`${printable(route.name).padEnd(NAME_WIDTH)} ${formatColumns(route)}`);
    const errors = listErrors(judgement);
    if (errors !== null) console.log(errors);
    const said = gate === null && outcome === 'holds' ? '' : describeOutcome(judgement);
    console.log(`${'replay'.padEnd(NAME_WIDTH)} ${formatColumns(judgement)}  ${said}`.trimEnd());
    return { exitCode: EXIT[outcome], figures: { ...judgement, routes: byRoute } };
  } finally {
    await client.close();
  }
}

/** Both times of a recording are rounded. */
const ROUNDED_MS = 1;

/**
 * A request waits for those of its session that had been answered when it was recorded, as its client did, and not for those
 * beside it. Its latency counts from when it was to start.
 */
export function inSessions(
  send: (request: TrafficRequest) => Promise<Answer>,
): (request: TrafficRequest) => Promise<Answer> {
  const underWay = new Map<string, Map<TrafficRequest, Promise<Answer>>>();
  return (request) => {
    const { session, atMs } = request;
    if (session === null) return send(request);
    const own = underWay.get(session) ?? new Map<TrafficRequest, Promise<Answer>>();
    underWay.set(session, own);
    const before = [...own].filter(([{ answeredAtMs }]) => answeredAtMs === null || answeredAtMs <= atMs + ROUNDED_MS);
    const answer =
      before.length === 0 ? send(request) : Promise.all(before.map(([, sent]) => sent)).then(() => send(request));
    own.set(request, answer);
    return answer.finally(() => {
      own.delete(request);
      if (own.size === 0) underWay.delete(session);
    });
  };
}
