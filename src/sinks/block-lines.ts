import type { BlockRecord, RequestRef } from '../core/record.js';

/** A block as a person wants to read it; the curl line stands below. */
export function blockText(block: BlockRecord): string {
  const { curl } = block;
  const text = `${whatHappened(block)}${placeOf(block)}${sizeOf(block)}${waitersOf(block)}`;
  return curl === null ? text : `${text}\n  ${curl}`;
}

/** Counts blocks of one route, line and cause instead of repeating them. */
export class RepeatedBlocks {
  private readonly seen = new Map<string, { block: BlockRecord; count: number; totalMs: number }>();

  constructor(
    /** Beyond so many places, further ones are told each time they happen. */
    private readonly maxPlaces = 200,
  ) {}

  /** Whether this block is the first of its place since {@link takeRepeated}. */
  isNew(block: BlockRecord): boolean {
    const { method, route } = block.request ?? block.suspect ?? {};
    // Who was only suspected before is told once more when it is proven.
    const proof = block.request === null ? 'suspected' : 'proven';
    const key = `${block.cause} ${proof} ${method} ${route} ${lineOnly(block.location)}`;
    const known = this.seen.get(key);
    if (known === undefined) {
      if (this.seen.size < this.maxPlaces) this.seen.set(key, { block, count: 0, totalMs: 0 });
      return true;
    }
    known.count += 1;
    known.totalMs += block.durationMs;
    return false;
  }

  /** One line for each place that blocked again, and forgets all places. */
  takeRepeated(): string[] {
    const lines: string[] = [];
    for (const { block, count, totalMs } of this.seen.values()) {
      if (count === 0) continue;
      const times = count === 1 ? 'once more' : `${count} times more`;
      lines.push(`${whoOf(block)} blocked the event loop ${times}, ${totalMs.toFixed(0)} ms in all${placeOf(block)}`);
    }
    this.seen.clear();
    return lines;
  }
}

function whatHappened(block: BlockRecord): string {
  const duration = `${block.durationMs.toFixed(0)} ms`;
  switch (block.cause) {
    case 'not-scheduled':
      return `The event loop stood still for ${duration}: the operating system did not let the process run`;
    case 'gc':
      return `Garbage collection blocked the event loop for ${duration} (${block.gcMs.toFixed(0)} ms collecting)`;
    case 'pile-up':
      return `The event loop was late by ${duration}: many short pieces of work ran one after another`;
    default:
      return `${whoOf(block)} blocked the event loop for ${duration}${block.cause === 'sync-io' ? ' waiting' : ''}`;
  }
}

function whoOf({ request, suspect }: BlockRecord): string {
  if (request !== null) return nameOf(request);
  if (suspect !== null) return `Probably ${nameOf(suspect)}`;
  return 'Something';
}

function nameOf({ method, route, handler }: RequestRef): string {
  return `${method} ${route === '' ? '(no route)' : route}${handler === null ? '' : ` (${handler})`}`;
}

function placeOf({ location, stack }: BlockRecord): string {
  if (location === null) return '';
  const call = stack.find((line) => line.endsWith(` (${location})`));
  const name = call?.slice(0, -location.length - 3).replace(/^async /, '');
  return ` at ${location}${name === undefined ? '' : ` (${name})`}`;
}

function sizeOf({ note }: BlockRecord): string {
  const sizes = [
    note?.rows === undefined ? '' : `${note.rows} rows`,
    note?.bytes === undefined ? '' : `${note.bytes} bytes`,
  ].filter((size) => size !== '');
  return sizes.length === 0 ? '' : `, ${sizes.join(', ')}`;
}

function waitersOf({ delayed }: BlockRecord): string {
  if (delayed.length === 0) return '';
  return `; ${delayed.length} ${delayed.length === 1 ? 'request' : 'requests'} waited`;
}

/** Samples of one loop land on different columns. */
const lineOnly = (location: string | null): string | undefined => location?.replace(/:\d+$/, '');
