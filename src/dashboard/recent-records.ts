import type { BlockRecord, DeferredRecord, PerfRecord, ResourceSample } from '../core/record.js';
import { pushBounded } from '../core/push-bounded.js';
import { cut, showRoute } from './route-rows.js';
import { addPoint } from './traffic.js';
import type { BlockRow, ContainerPoint, FailedWork } from './view.js';

const MAX_BLOCKS = 30;
const MAX_TIMES = 200;
const MAX_FAILED = 30;
const MAX_STACK = 6;
const MAX_FRAME = 400;
const MAX_WAITERS = 5;
/** A longer one would crowd out the rest of the answer; the log has it whole. */
export const MAX_CURL = 1_000;

export interface BlockGroup {
  readonly row: BlockRow;
  readonly times: { at: number; ms: number }[];
}

/** Keeps the last records of each kind, in bounded memory. */
export class RecentRecords {
  /** By kind, the one that came last at the end. */
  private readonly groups = new Map<string, BlockGroup>();
  readonly failedWork: FailedWork[] = [];
  readonly container: ContainerPoint[] = [];
  private lastId = 0;

  readonly add = (record: PerfRecord): void => {
    if (record.kind === 'block') this.addBlock(record);
    else if (record.kind === 'resource') this.addSample(record.sample);
    else if (record.kind === 'deferred' && record.outcome !== 'completed') this.addFailed(record);
  };

  blocks(): BlockGroup[] {
    return [...this.groups.values()].toReversed();
  }

  private addBlock(given: BlockRecord): void {
    // A pause of the whole process meets chance lines.
    const block = given.cause === 'not-scheduled' ? { ...given, location: null, stack: [] } : given;
    const culprit = block.request ?? block.suspect;
    const line = block.location?.replace(/:\d+$/, '') ?? '';
    const key = `${block.cause} ${block.request !== null} ${culprit === null ? '' : showRoute(culprit)} ${line}`;
    const known = this.groups.get(key);
    const row = describeBlock(block, known?.row ?? null, known?.row.id ?? (this.lastId += 1));
    const group = { row, times: known?.times ?? [] };
    pushBounded(group.times, { at: row.at, ms: row.durationMs }, MAX_TIMES);
    this.groups.delete(key);
    this.groups.set(key, group);
    if (this.groups.size > MAX_BLOCKS) this.groups.delete(this.groups.keys().next().value!);
  }

  private addFailed({ at, name, route, outcome, attempt, durable, error }: DeferredRecord): void {
    const texts = { name: cut(name, 100), error: error === null ? null : cut(error, 300) };
    pushBounded(this.failedWork, { at, route, outcome, attempt, durable, ...texts }, MAX_FAILED);
  }

  private addSample({ at, cpu, memory }: ResourceSample): void {
    addPoint(this.container, [at, cpu.window?.usageCores ?? null, memory.workingSetBytes ?? memory.usageBytes]);
  }
}

function describeBlock(block: BlockRecord, before: BlockRow | null, id: number): BlockRow {
  const culprit = block.request ?? block.suspect;
  const waiters = [...new Set(block.delayed.map(showRoute))];
  return {
    id,
    at: block.startedAt,
    since: before?.since ?? block.startedAt,
    count: (before?.count ?? 0) + 1,
    totalMs: (before?.totalMs ?? 0) + block.durationMs,
    maxMs: Math.max(before?.maxMs ?? 0, block.durationMs),
    durationMs: block.durationMs,
    cause: block.cause,
    route: culprit === null ? null : showRoute(culprit),
    handler: culprit?.handler ?? null,
    proven: block.request !== null,
    location: block.location === null ? null : cut(block.location, 300),
    stack: showStack(block),
    gcMs: block.gcMs,
    waited: block.delayed.length,
    waiters: waiters.slice(0, MAX_WAITERS),
    curl: block.curl === null || block.curl.length > MAX_CURL ? (before?.curl ?? null) : block.curl,
  };
}

/** The innermost frames, and the location's own wherever it is: the flame graph opens at it. */
function showStack({ location, stack }: BlockRecord): string[] {
  const shown = stack.slice(0, MAX_STACK);
  const own = stack.find((frame) => location !== null && frame.endsWith(`(${location})`));
  if (own !== undefined && !shown.includes(own)) shown[MAX_STACK - 1] = own;
  return shown.map((frame) => cut(frame, MAX_FRAME));
}
