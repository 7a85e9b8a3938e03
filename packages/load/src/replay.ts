import { Allowed } from './allowed.js';
import { Client, type Answer } from './client.js';
import { Latencies } from './figures.js';
import { Gate } from './gate.js';
import { leftOut, otherAnswers } from './notes.js';
import { runOpenLoop } from './open-loop.js';
import { commonOf, textOf, type CommandResult, type Given, type Print } from './options.js';
import { ms, percent, positive, printable } from './quantity.js';
import { targetOf } from './target.js';
import { nameOf, readTraffic, type TrafficRequest } from './traffic.js';
import { warmUp } from './warm-up.js';
import { EXIT } from './usage.js';

/** Of one route. */
interface RouteAnswers {
  readonly latencies: Latencies;
  sent: number;
  failed: number;
}

/** A recording again: each request at its time, `speed` times as fast, and each session in its order. */
export async function replay(file: string, options: Given, print: Print): Promise<CommandResult> {
  const { allow, mine, headers, timeoutMs } = commonOf(options);
  const target = targetOf(textOf(options, 'target'), '--target', mine);
  const speed = positive(textOf(options, 'speed'), '--speed');
  const gate = options['gate'] === undefined ? null : new Gate(textOf(options, 'gate'));
  const traffic = await readTraffic(file, new Allowed(allow));
  for (const line of leftOut(traffic)) print(line);
  const { requests } = traffic;
  const client = new Client(target.origin, timeoutMs, headers);
  const routes = new Map<string, RouteAnswers>();
  try {
    await warmUp();
    const load = await runOpenLoop({
      offsetsMs: Float64Array.from(requests, ({ atMs }) => (atMs - requests[0]!.atMs) / speed),
      requestAt: (index) => requests[index]!,
      send: inSessions((request) => client.send(request)),
      ended({ request, latencyMs, failure, failed }) {
        const name = nameOf(request);
        const of = routes.get(name) ?? { latencies: new Latencies(), sent: 0, failed: 0 };
        routes.set(name, of);
        of.sent += 1;
        if (failed) of.failed += 1;
        if (failure === null || failure === 'timeout') of.latencies.add(latencyMs);
      },
    });
    const durationMs = load.latencies.figures();
    const errorShare = load.failed / load.sent;
    const failures = gate?.failures({ durationMs, errorShare }) ?? [];
    const unsent = requests.length - load.sent;
    if (load.overrun) failures.push(`10,000 requests in flight: ${unsent} were not sent any more`);
    const exitCode = load.voidBecause !== null ? EXIT.void : failures.length > 0 ? EXIT.fails : EXIT.holds;
    for (const line of otherAnswers(load)) print(line);
    for (const [name, { sent, latencies, failed }] of [...routes].toSorted(([, a], [, b]) => b.sent - a.sent))
      print(`${line(printable(name), sent, latencies)}  errors ${percent(failed / sent)}`);
    const said =
      load.voidBecause !== null
        ? `void: ${load.voidBecause}`
        : failures.length > 0
          ? `fails ${failures.join(', ')}`
          : gate === null
            ? ''
            : 'holds';
    print(`${line('replay', load.sent, load.latencies)}  errors ${percent(errorShare)}  ${said}`.trimEnd());
    const json = {
      requests: load.sent,
      durationMs,
      errorShare,
      failures: Object.fromEntries(load.failures),
      otherStatus: Object.fromEntries(load.otherStatus),
      lateShare: load.lateShare,
      ownCpu: load.ownCpu,
      because: load.voidBecause === null ? failures : [load.voidBecause],
      routes: [...routes].map(([name, { sent, failed, latencies }]) => ({
        name,
        requests: sent,
        errors: failed,
        durationMs: latencies.figures(),
      })),
    };
    const bars = json.routes.map(({ name, durationMs: { p95 }, errors }) => {
      return { name, value: p95, text: Number.isNaN(p95) ? 'no answer' : ms(p95), isBad: errors > 0 };
    });
    return { exitCode, json, chart: { title: 'p95 of each route', bars } };
  } finally {
    await client.close();
  }
}

function line(name: string, sent: number, latencies: Latencies): string {
  const { p50, p95, p99 } = latencies.figures();
  const [a, b, c] = [p50, p95, p99].map((value) => (Number.isNaN(value) ? '-' : ms(value)));
  return `${name.padEnd(28)} ${String(sent).padStart(7)} requests  p50 ${a!.padStart(7)}  p95 ${b!.padStart(7)}  p99 ${c!.padStart(7)}`;
}

/** A session's next request waits for its last answer, as its client did; its latency counts from when it was to start. */
export function inSessions(
  send: (request: TrafficRequest) => Promise<Answer>,
): (request: TrafficRequest) => Promise<Answer> {
  const last = new Map<string, Promise<Answer>>();
  return (request) => {
    const { session } = request;
    if (session === null) return send(request);
    const before = last.get(session);
    const answer = before === undefined ? send(request) : before.then(() => send(request));
    last.set(session, answer);
    return answer;
  };
}
