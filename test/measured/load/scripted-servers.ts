import type { RequestListener } from 'node:http';

/** A server whose capacity is known: so many at a time, each for so long. */
export interface Script {
  readonly workers: number;
  readonly workMs: number;
  /** More than so many waiting: 503. */
  readonly maxWaiting?: number;
  /** Beside the work, without a place. */
  readonly alsoMs?: number;
  /** Each this-many-th request takes ten times as long. */
  readonly slowEvery?: number;
}

export function scripted({
  workers,
  workMs,
  maxWaiting = Infinity,
  alsoMs = 0,
  slowEvery = Infinity,
}: Script): RequestListener {
  const waiting: (() => void)[] = [];
  /** When each place is free again: exact, however late a timer is. */
  const freeAtMs = Array.from({ length: workers }, () => 0);
  let [working, count] = [0, 0];
  const begin = (): void => {
    if (working === workers || waiting.length === 0) return;
    const work = waiting.shift()!;
    working += 1;
    work();
  };
  return (request, response) => {
    if (request.url === '/perf/snapshot' || waiting.length >= maxWaiting) {
      response.writeHead(request.url === '/' ? 503 : 404).end();
      return;
    }
    count += 1;
    const ms = count % slowEvery === 0 ? workMs * 10 : workMs;
    waiting.push(() => {
      const now = performance.now();
      const place = freeAtMs.indexOf(Math.min(...freeAtMs));
      // A place that was free a moment ago began then, if somebody waited.
      const from = now - freeAtMs[place]! < 15 ? freeAtMs[place]! : now;
      freeAtMs[place] = from + ms;
      setTimeout(
        () => {
          working -= 1;
          begin();
          setTimeout(() => response.end('{"ok":true}'), alsoMs);
        },
        Math.max(0, freeAtMs[place] - now),
      );
    });
    begin();
  };
}

const knee = (script: Script): { script: Script; capacity: number; name: string } => {
  const { workers, workMs, slowEvery } = script;
  const mean = slowEvery === undefined ? workMs : workMs * (1 + 9 / slowEvery);
  return {
    script,
    capacity: (workers * 1_000) / mean,
    name: Object.entries(script)
      .map(([key, value]) => `${key} ${value}`)
      .join(', '),
  };
};

/** Twenty of them: a lock, pools, queues that refuse, slow ones among fast. */
export const SCRIPTS = [
  ...[1, 2, 4, 8].map((workers) => knee({ workers, workMs: 20 * workers })),
  ...[1, 3, 10].map((workers) => knee({ workers, workMs: 10 * workers })),
  ...[2, 5, 10].map((workers) => knee({ workers, workMs: 50, alsoMs: 20 })),
  ...[1, 2, 4, 8].map((workers) => knee({ workers, workMs: 15 * workers, maxWaiting: 20 })),
  ...[2, 4, 8].map((workers) => knee({ workers, workMs: 40, alsoMs: 100 })),
  ...[4, 8, 10].map((workers) => knee({ workers, workMs: 20, slowEvery: 20 })),
];
