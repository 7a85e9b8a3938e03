import { innermostCall } from '../core/innermost-call.js';
import type { BlockRecord } from '../core/record.js';
import { counted, nameOf, sizeOf } from './names.js';
import { timesMore, type Repeated } from './repeats.js';

/** A block as a person wants to read it; the curl line stands below. */
export function blockLines(block: BlockRecord): string[] {
  const { curl, delayed, note } = block;
  const waited = delayed.length === 0 ? '' : `; ${counted(delayed.length, 'request')} waited`;
  const text = `${whatHappened(block)}${placeOf(block)}${sizeOf(note)}${waited}`;
  return curl === null ? [text] : [text, curl];
}

/**
 * Blocks of one kind have their route, cause and line in common, or the dependency whose functions ran; one that is proven is told
 * even after suspicions.
 */
export function kindOfBlock({ request, suspect, cause, location, stack }: BlockRecord): string {
  const { method, route } = request ?? suspect ?? {};
  const place = lineOnly(location) ?? dependencyOf(innermostCall(stack) ?? '');
  return `${cause} ${request === null ? 'suspected' : 'proven'} ${method} ${route} ${place}`;
}

/** One line for what blocked again. */
export function repeatedText({ first, count, totalMs }: Repeated<BlockRecord>): string {
  const all = `${totalMs.toFixed(0)} ms in all`;
  if (first === null) return `The event loop was blocked ${timesMore(count)} in other places, ${all}`;
  return `${whatCameAgain(first)} ${timesMore(count)}, ${all}${CAUSES[first.cause]}${placeOf(first)}`;
}

/** The same for JSON loggers. */
export function repeatedFields({ first, count, totalMs, maxMs }: Repeated<BlockRecord>): object {
  const { method, route, handler } = first?.request ?? first?.suspect ?? {};
  const { cause, location } = first ?? {};
  const proven = first === null ? undefined : first.request !== null;
  const of = { cause, location, proven, method, route, handler };
  return { event: 'event_loop_blocks_repeated', count, totalMs, maxMs, ...of };
}

const CAUSES: Readonly<Record<BlockRecord['cause'], string>> = {
  javascript: '',
  unknown: '',
  'sync-io': ', waiting',
  gc: ', collecting garbage',
  'not-scheduled': ', not scheduled by the operating system',
  'pile-up': ', by many short pieces of work',
};

function whatHappened(block: BlockRecord): string {
  const duration = `${block.durationMs.toFixed(0)} ms`;
  switch (block.cause) {
    case 'not-scheduled':
      return `The event loop stood still for ${duration}: the operating system did not let the process run`;
    case 'gc':
      return `Garbage collection${during(block)} blocked the event loop for ${duration} (${block.gcMs.toFixed(0)} ms collecting)`;
    case 'pile-up':
      return `The event loop was late by ${duration}: many short pieces of work ran one after another`;
    default:
      return `${whoOf(block)} blocked the event loop for ${duration}${block.cause === 'sync-io' ? ' waiting' : ''}`;
  }
}

/** Where nothing blocked the loop, nothing is said to have. */
function whatCameAgain(block: BlockRecord): string {
  if (block.cause === 'not-scheduled') return 'The event loop stood still';
  if (block.cause === 'pile-up') return 'The event loop was late';
  return `${whoOf(block)} blocked the event loop`;
}

function whoOf({ request, suspect }: BlockRecord): string {
  if (request !== null) return nameOf(request);
  return suspect === null ? 'Something' : `Probably ${nameOf(suspect)}`;
}

function during({ request, suspect }: BlockRecord): string {
  if (request !== null) return ` during ${nameOf(request)}`;
  return suspect === null ? '' : `, probably during ${nameOf(suspect)},`;
}

/** The line of the application's code; else the innermost call that says something, which is somebody else's. */
function placeOf({ location, stack }: BlockRecord): string {
  if (location === null) {
    const call = innermostCall(stack);
    return call === null ? '' : ` in ${call}`;
  }
  const call = stack.find((line) => line.endsWith(` (${location})`));
  const name = call?.slice(0, -location.length - 3).replace(/^async /, '');
  return ` at ${location}${name === undefined ? '' : ` (${name})`}`;
}

/** The package of a call; else the function. */
const dependencyOf = (call: string): string =>
  /.*node_modules[\\/]((?:@[^\\/]+[\\/])?[^\\/]+)/.exec(call)?.[1] ?? call.replace(/:\d+:\d+\)$/, '');

/** Samples of one loop land on different columns. */
const lineOnly = (location: string | null): string | undefined => location?.replace(/:\d+$/, '');
