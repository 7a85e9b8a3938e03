import type { MessagePort } from 'node:worker_threads';
import type { MODE, UNITS_PER_MS, WORD } from './beat.js';

/** The thread's input. Plain data: it crosses to another thread. */
export interface WitnessThreadData {
  readonly words: Int32Array;
  /** The thread's function can import nothing. */
  readonly beat: { readonly WORD: typeof WORD; readonly MODE: typeof MODE; readonly UNITS_PER_MS: typeof UNITS_PER_MS };
  /** Milliseconds on the kernel's monotonic clock when the main thread's `performance.now()` was 0. */
  readonly originMs: number;
  readonly host: string;
  readonly port: number;
  readonly wedgedMs: number;
  readonly thresholdMs: number;
  /** Milliseconds between two beats while there are no requests. */
  readonly idleTickMs: number;
  /** Receives a {@link LoopHolder} from the sampler's thread, past the main thread. */
  readonly holders: MessagePort;
}

/** The code that blocks the loop, by the last stack sample. */
export interface LoopHolder {
  /** The beat that the sample followed: the next beat ends the block. */
  readonly seq: number;
  /** `'GET /reports/:id'`; null outside of requests. */
  readonly route: string | null;
  /** `'ReportsService.render'` */
  readonly method: string | null;
  readonly location: string | null;
}

/** The metrics of the application as its sink writes them. */
export interface Exposition {
  readonly type: string;
  readonly body: string;
}

/** Messages of the thread: its address, why it serves nothing, or a request for an {@link Exposition}. */
export type WitnessMessage =
  | { readonly listening: number }
  | { readonly failed: string }
  | { readonly wants: 'metrics' };

/** The witness's thread: an HTTP server with an event loop of its own. It starts from its own text (see sampler-source.ts), without imports. */
export function witnessThread(): void {
  const { parentPort, workerData } = process.getBuiltinModule('node:worker_threads');
  const { createServer } = process.getBuiltinModule('node:http');
  const data = workerData as WitnessThreadData;
  const { words, beat, originMs, wedgedMs, thresholdMs, idleTickMs } = data;
  const { WORD, MODE, UNITS_PER_MS } = beat;
  /** An answer waits no longer for fresh metrics: the last ones are sent then. */
  const maxScrapeMs = 30;
  const jsonType = 'application/json; charset=utf-8';
  let holder: LoopHolder | null = null;
  let metrics: Exposition = { type: 'text/plain; version=0.0.4; charset=utf-8', body: '' };
  let waiting: (() => void)[] = [];

  data.holders.on('message', (message: LoopHolder) => (holder = message));
  parentPort!.on('message', (message: Exposition) => {
    metrics = message;
    wake();
  });
  const server = createServer((request, response) => {
    const path = (request.url ?? '').split('?', 1)[0];
    if (request.method !== 'GET' && request.method !== 'HEAD') return send(405, jsonType, '{"error":"GET only"}');
    if (path === '/live') {
      const live = observe();
      return send(live.beatAgeMs < wedgedMs ? 200 : 503, jsonType, JSON.stringify(live));
    }
    if (path === '/metrics') return void freshMetrics().then(() => send(200, metrics.type, exposition()));
    send(404, jsonType, '{"error":"/live and /metrics are here"}');

    function send(status: number, type: string, body: string): void {
      response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' }).end(body);
    }
  });
  server.maxConnections = 100;
  server.on('error', (error) => parentPort!.postMessage({ failed: error.message } satisfies WitnessMessage));
  server.listen({ port: data.port, host: data.host, exclusive: true }, () => {
    const { port } = server.address() as { port: number };
    parentPort!.postMessage({ listening: port } satisfies WitnessMessage);
  });

  function beatAge(): number {
    const nowMs = Number(process.hrtime.bigint()) / 1e6 - originMs;
    return Math.max(0, ((nowMs * UNITS_PER_MS - Atomics.load(words, WORD.beatAt)) | 0) / UNITS_PER_MS);
  }

  function isBlocked(beatAgeMs: number): boolean {
    const dueMs = Atomics.load(words, WORD.mode) === MODE.awake ? 0 : idleTickMs;
    return beatAgeMs >= dueMs + thresholdMs;
  }

  function observe(): { beatAgeMs: number; blocked: (Omit<LoopHolder, 'seq'> & { ms: number }) | null } {
    const beatAgeMs = beatAge();
    if (!isBlocked(beatAgeMs)) return { beatAgeMs, blocked: null };
    const known = holder !== null && holder.seq === Atomics.load(words, WORD.seq) ? holder : null;
    const { route = null, method = null, location = null } = known ?? {};
    return { beatAgeMs, blocked: { ms: beatAgeMs, route, method, location } };
  }

  /** Resolves with the main thread's answer, at once while it is stuck, and in time in any case. */
  async function freshMetrics(): Promise<void> {
    if (isBlocked(beatAge())) return;
    await new Promise<void>((resolve) => {
      waiting.push(resolve);
      if (waiting.length > 1) return;
      parentPort!.postMessage({ wants: 'metrics' } satisfies WitnessMessage);
      setTimeout(wake, maxScrapeMs);
    });
  }

  function wake(): void {
    const woken = waiting;
    waiting = [];
    for (const resolve of woken) resolve();
  }

  function exposition(): string {
    const name = 'perf_eventloop_beat_age_seconds';
    const own = `# HELP ${name} Time since the event loop last turned.\n# TYPE ${name} gauge\n${name} ${beatAge() / 1_000}\n`;
    const end = '# EOF\n';
    const { body } = metrics;
    return body.endsWith(end) ? body.slice(0, -end.length) + own + end : body + own;
  }
}
