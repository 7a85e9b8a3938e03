import { counted } from '../core/figures.js';
import { innermostCall } from '../core/innermost-call.js';
import type { BlockRecord } from '../core/record.js';
import { nameRoute, describeSize } from './names.js';
import { timesMore, type Repeated } from './repeats.js';

/** The line of a block, and the curl line below it. */
export function blockLines(block: BlockRecord): string[] {
  const { curl, delayed, note } = block;
  const waited = delayed.length === 0 ? '' : `; ${counted(delayed.length, 'request')} waited`;
  const text = `${whatHappened(block)}${block.cause === 'not-scheduled' ? '' : describePlace(block)}${describeSize(note)}${waited}`;
  return curl === null ? [text] : [text, curl];
}

/** Blocks of one kind share route, cause and line, or the dependency that ran. A proven one is another kind than a suspected one. */
export function nameBlockKind({ request, suspect, cause, location, stack }: BlockRecord): string {
  // A process without CPU pauses at any line: the line is chance.
  if (cause === 'not-scheduled') return cause;
  const { method, route } = request ?? suspect ?? {};
  const place = lineOnly(location) ?? findDependency(innermostCall(stack) ?? '');
  return `${cause} ${request === null ? 'suspected' : 'proven'} ${method} ${route} ${place}`;
}

export function repeatedText({ first, count, totalMs }: Repeated<BlockRecord>): string {
  const times = `${timesMore(count)} (${totalMs.toFixed(0)} ms in total)`;
  if (first === null) return `The event loop was blocked ${times} in other places`;
  if (first.cause === 'not-scheduled') return `The process was not scheduled ${times}`;
  if (first.cause === 'pile-up') return `The event loop was delayed ${times} by many short tasks in a row`;
  if (first.cause === 'unknown') return `The event loop was blocked ${times}${NO_SAMPLE}`;
  return `${subject(first)} blocked the event loop ${times}${CAUSES[first.cause] ?? ''}${describePlace(first)}`;
}

export function repeatedFields({ first, count, totalMs, maxMs }: Repeated<BlockRecord>): object {
  const { method, route, handler } = first?.request ?? first?.suspect ?? {};
  const { cause, location } = first ?? {};
  const proven = first === null ? undefined : first.request !== null;
  const of = { cause, location, proven, method, route, handler };
  return { event: 'event_loop_blocks_repeated', count, totalMs, maxMs, ...of };
}

const CAUSES: Readonly<Partial<Record<BlockRecord['cause'], string>>> = {
  'sync-io': ' in synchronous I/O',
  gc: ' in garbage collection',
};

const NO_SAMPLE = ', and no stack sample shows by what';

function whatHappened(block: BlockRecord): string {
  const duration = `${block.durationMs.toFixed(0)} ms`;
  switch (block.cause) {
    case 'not-scheduled':
      return `The process was not scheduled for ${duration} (CPU throttling, a busy host, or a stopped process)`;
    case 'gc':
      return `Garbage collection${during(block)} blocked the event loop for ${duration} (${block.gcMs.toFixed(0)} ms collecting)`;
    case 'pile-up':
      return `The event loop was delayed ${duration} by many short tasks in a row`;
    case 'unknown':
      return `The event loop was blocked for ${duration}${NO_SAMPLE}`;
    default:
      return `${subject(block)} blocked the event loop for ${duration}${CAUSES[block.cause] ?? ''}`;
  }
}

function subject({ request, suspect }: BlockRecord): string {
  if (request !== null) return nameRoute(request);
  return suspect === null ? 'Code of no known request' : `Probably ${nameRoute(suspect)}`;
}

function during({ request, suspect }: BlockRecord): string {
  if (request !== null) return ` during ${nameRoute(request)}`;
  return suspect === null ? '' : `, probably during ${nameRoute(suspect)},`;
}

/** The line of the application's code, else the innermost call of a dependency or of Node. */
function describePlace({ location, stack }: BlockRecord): string {
  if (location === null) {
    const call = innermostCall(stack);
    return call === null ? '' : ` in ${call}`;
  }
  const call = stack.find((line) => line.endsWith(` (${location})`));
  const name = call?.slice(0, -location.length - 3).replace(/^async /, '');
  return ` at ${location}${name === undefined ? '' : ` (${name})`}`;
}

/** The package of a call; else the function. */
const findDependency = (call: string): string =>
  /.*node_modules[\\/]((?:@[^\\/]+[\\/])?[^\\/]+)/.exec(call)?.[1] ?? call.replace(/:\d+:\d+\)$/, '');

/** Samples of one loop land on different columns. */
const lineOnly = (location: string | null): string | undefined => location?.replace(/:\d+$/, '');
