export interface WitnessOptions {
  readonly port: number;
  readonly host: string;
  readonly wedgedMs: number;
}

/** The code that blocks the loop, by the last stack sample; null is unknown. */
export interface LoopHolder {
  /** `'GET /reports/:id'`; null outside of requests. */
  readonly route: string | null;
  /** `'ReportsService.render'` */
  readonly method: string | null;
  readonly location: string | null;
}

/** The answer of `/live`. */
export interface Live {
  readonly beatAgeMs: number;
  readonly blocked: (LoopHolder & { readonly ms: number }) | null;
}

/** The metrics of the application as its sink writes them. */
export interface Exposition {
  readonly type: string;
  readonly body: string;
}

/** The witness listens, serves nothing, or requests an {@link Exposition} of the main thread. */
export type WitnessMessage =
  | { readonly listening: number }
  | { readonly failed: string }
  | { readonly wants: 'metrics' };

/** Serves `/live` and `/metrics` in the sampler's thread, which runs this function's text (see sampler-source.ts): it uses nothing from outside. */
export function serveWitness(
  { port, host, wedgedMs }: WitnessOptions,
  observe: () => Live,
  send: (message: WitnessMessage) => void,
): { receive(exposition: Exposition): void; close(): void } {
  const { createServer } = process.getBuiltinModule('node:http');
  /** An answer waits no longer for fresh metrics: the last ones are sent then. */
  const maxScrapeMs = 30;
  const jsonType = 'application/json; charset=utf-8';
  let metrics: Exposition = { type: 'text/plain; version=0.0.4; charset=utf-8', body: '' };
  let waiting: (() => void)[] = [];

  const server = createServer((request, response) => {
    const path = (request.url ?? '').split('?', 1)[0];
    if (request.method !== 'GET' && request.method !== 'HEAD') return answer(405, jsonType, '{"error":"GET only"}');
    if (path === '/live') {
      const live = observe();
      return answer(live.beatAgeMs < wedgedMs ? 200 : 503, jsonType, JSON.stringify(live));
    }
    if (path === '/metrics') return void freshMetrics().then(() => answer(200, metrics.type, writeMetrics()));
    answer(404, jsonType, '{"error":"/live and /metrics are here"}');

    function answer(status: number, type: string, body: string): void {
      response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' }).end(body);
    }
  });
  server.maxConnections = 100;
  server.on('error', (error) => send({ failed: error.message }));
  server.listen({ port, host, exclusive: true }, () => {
    const address = server.address() as { port: number };
    send({ listening: address.port });
  });

  /** Resolves with the main thread's answer, at once while it is stuck, and in time in any case. */
  async function freshMetrics(): Promise<void> {
    if (observe().blocked !== null) return;
    await new Promise<void>((resolve) => {
      waiting.push(resolve);
      if (waiting.length > 1) return;
      send({ wants: 'metrics' });
      setTimeout(wake, maxScrapeMs);
    });
  }

  function wake(): void {
    const woken = waiting;
    waiting = [];
    for (const resolve of woken) resolve();
  }

  function writeMetrics(): string {
    const name = 'perf_eventloop_beat_age_seconds';
    const ageSeconds = observe().beatAgeMs / 1_000;
    const own = `# HELP ${name} Time since the event loop last turned.\n# TYPE ${name} gauge\n${name} ${ageSeconds}\n`;
    const end = '# EOF\n';
    const { body } = metrics;
    return body.endsWith(end) ? body.slice(0, -end.length) + own + end : body + own;
  }

  return {
    receive(exposition) {
      metrics = exposition;
      wake();
    },
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
