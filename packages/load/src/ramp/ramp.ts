import { Allowed } from '../allowed.js';
import { Client } from '../client.js';
import { Gate } from '../gate.js';
import { judged, otherAnswers } from '../judgement.js';
import { runOpenLoop, type Send } from '../open-loop.js';
import { readCommon, readList, readText, type CommandResult, type Given } from '../options.js';
import { evenly } from '../pacer.js';
import { durationMs, parseHeaders, positive, printable, parseSteps } from '../quantity.js';
import { readBase, checkTarget } from '../target.js';
import { makeGet, leftOut, readTraffic, type TrafficRequest } from '../traffic.js';
import { UsageError } from '../usage.js';
import { warmUp } from '../warm-up.js';
import { findReasons, type Seen } from './reasons.js';
import { pickProbes, recover, usualProbes, type Probe } from './recovery.js';
import { ServerView, type Snapshot } from './server-view.js';
import { chooseExitCode, stepLine, verdictLines, type RampResult, type StepResult } from './verdict.js';

interface Plan {
  /** Requests a second at 1X. */
  readonly start: number;
  readonly steps: readonly number[];
  readonly holdMs: number;
  readonly restMs: number;
  readonly gate: Gate;
}

const MAX_PER_SECOND = 20_000;
const MAX_REQUESTS = 5_000_000;
/** Another process may have had its moment: so often a void step is tried again. */
const VOID_AGAIN = 2;
/** Latency that counts as recovered when the gate has no condition on latency. */
const GOOD_ANSWER_MS = 1_000;

/** X, 2X, 3X with a rest between, until a step does not hold. */
export async function ramp(url: string, options: Given): Promise<CommandResult> {
  const { allow, mine, headers, timeoutMs } = readCommon(options);
  const target = checkTarget(url, '<url>', mine);
  const plan: Plan = {
    start: positive(readText(options, 'start'), '--start'),
    steps: parseSteps(readText(options, 'steps')),
    holdMs: durationMs(readText(options, 'hold'), '--hold'),
    restMs: durationMs(readText(options, 'rest'), '--rest'),
    gate: new Gate(readText(options, 'gate')),
  };
  if (plan.holdMs === 0) throw new UsageError('--hold must be above 0: a step without requests holds nothing.');
  const most = plan.start * plan.steps.at(-1)!;
  if (most > MAX_PER_SECOND || (most * plan.holdMs) / 1_000 > MAX_REQUESTS)
    throw new UsageError(
      `One process starts at most ${MAX_PER_SECOND} requests a second and ${MAX_REQUESTS} a step: lower --start, --steps or --hold.`,
    );
  const snapshot = new URL(readText(options, 'snapshot-path'), target.origin);
  if (snapshot.origin !== target.origin) throw new UsageError('--snapshot-path must be a path such as /perf/snapshot.');
  const view = new ServerView(snapshot, parseHeaders(readList(options, 'snapshot-header'), '--snapshot-header'));
  const from = options['from'];
  if (from === undefined && allow.length > 0)
    throw new UsageError('--allow names requests of a recording: give one with --from.');
  const traffic = typeof from === 'string' ? await readTraffic(from, new Allowed(allow)) : null;
  if (traffic !== null) for (const line of leftOut(traffic)) console.log(line);
  const client = new Client(traffic === null ? new URL(target.origin) : readBase(target, '<url>'), timeoutMs, headers);
  try {
    await warmUp();
    const requests = traffic?.requests ?? [makeGet(target.pathname + target.search)];
    const result = await new Ramp(plan, requests, traffic !== null, client, view).run();
    for (const line of verdictLines(result)) console.log(line);
    return { exitCode: chooseExitCode(result), figures: result };
  } finally {
    await Promise.all([client.close(), view.close()]);
  }
}

/** A step, and how the server saw it. */
interface Tried extends StepResult {
  readonly seen: Seen;
}

class Ramp {
  /** Before the first step. */
  private restedAt: Snapshot | null = null;
  /** Asked in the rest after a step: is the server back? None: it never was there. */
  private probes: readonly Probe[] = [];
  private readonly tried: Tried[] = [];
  private next = 0;

  constructor(
    private readonly plan: Plan,
    private readonly requests: readonly TrafficRequest[],
    private readonly isRecorded: boolean,
    private readonly client: Client,
    private readonly view: ServerView,
  ) {}

  async run(): Promise<RampResult> {
    const { plan, view, tried } = this;
    this.restedAt = await view.read();
    const slowestMs = plan.gate.slowestMs ?? GOOD_ANSWER_MS;
    if (plan.restMs > 0) this.probes = await usualProbes(pickProbes(this.requests), slowestMs, this.send);
    for (const factor of plan.steps) {
      let step = await this.try(factor);
      for (let again = 0; step.outcome === 'void' && again < VOID_AGAIN; again++) step = await this.try(factor);
      tried.push(step);
      if (step.outcome !== 'holds' || step.recoveredAfterMs === null) break;
    }
    const [first, last] = [tried[0]!, tried.at(-1)!];
    return {
      steps: tried.map(({ seen: _seen, ...step }) => step),
      reasons: last.outcome === 'fails' ? (this.told(() => findReasons(first.seen, last.seen)) ?? []) : [],
      obstacle: view.obstacle,
    };
  }

  /** Another version's snapshot may look otherwise. */
  private told<T>(read: () => T): T | null {
    try {
      return read();
    } catch (error) {
      this.view.obstacle = `the snapshot cannot be read: ${printable((error as Error).message)}`;
      return null;
    }
  }

  private async try(factor: number): Promise<Tried> {
    const { plan, view, send, probes } = this;
    const ratePerSecond = plan.start * factor;
    const before = await view.read();
    let after: Promise<Snapshot | null> = Promise.resolve(null);
    let rest: ReturnType<typeof recover> = Promise.resolve(undefined);
    const load = await runOpenLoop({
      offsetsMs: evenly(ratePerSecond, plan.holdMs),
      requestAt: this.requestAt,
      send,
      allStarted: () => {
        after = view.read();
        if (probes.length > 0) rest = recover(plan.restMs, plan.start, probes, send);
      },
    });
    const seen = { before, after: await after };
    const recoveredAfterMs = await rest;
    const judgement = judged(load, plan.gate);
    for (const line of otherAnswers(judgement, this.isRecorded)) console.log(line);
    const rested = plan.restMs > 0 ? await view.read() : null;
    const memory = this.told(() => memoryRatio(this.restedAt, rested));
    const step = { factor, ratePerSecond, ...judgement, recoveredAfterMs, memoryRatio: memory, seen };
    console.log(stepLine(step));
    return step;
  }

  private readonly send: Send = (request) => this.client.send(request);

  private readonly requestAt = (): TrafficRequest => this.requests[this.next++ % this.requests.length]!;
}

function memoryRatio(before: Snapshot | null, after: Snapshot | null): number | null {
  const [was, is] = [before?.resources?.process.rssBytes, after?.resources?.process.rssBytes];
  return was === undefined || is === undefined ? null : is / was;
}
