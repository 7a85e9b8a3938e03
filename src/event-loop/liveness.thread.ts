export interface LivenessOptions {
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

/** To the main thread: the server listens at a port, it cannot listen, or it wants an {@link Exposition}. */
export type LivenessMessage =
  | { readonly listening: number }
  | { readonly failed: string }
  | { readonly wants: 'metrics' };

export interface LivenessServer {
  receive(exposition: Exposition): void;
  close(): void;
}

/** Serves `/live` and `/metrics`. The sampler's thread runs this function's text (see sampler-source.ts): it uses nothing from outside. */
export function serveLiveness(
  { port, host, wedgedMs }: LivenessOptions,
  observe: () => Live,
  send: (message: LivenessMessage) => void,
): LivenessServer {
  const { createServer } = process.getBuiltinModule('node:http');
  /** An answer waits so long for fresh metrics, then it sends the last ones. */
  const maxScrapeMs = 30;
  const jsonType = 'application/json; charset=utf-8';
  /** Short, since a probe sends its head at once, and slow clients could take all connections. */
  const limits = { headersTimeout: 2_000, requestTimeout: 2_000, connectionsCheckingInterval: 2_000 };
  /** Encoded once: concurrent scrapes share the bytes. */
  let metrics = { type: 'text/plain; version=0.0.4; charset=utf-8', bytes: Buffer.alloc(0), end: '' };
  let waiting: (() => void)[] = [];

  const server = createServer(limits, (request, response) => {
    const path = (request.url ?? '').split('?', 1)[0];
    if (request.method !== 'GET' && request.method !== 'HEAD') return answer(405, jsonType, '{"error":"GET only"}');
    if (path === '/live') {
      const live = observe();
      return answer(live.beatAgeMs < wedgedMs ? 200 : 503, jsonType, JSON.stringify(live));
    }
    if (path === '/metrics')
      return void freshMetrics().then(() => answer(200, metrics.type, metrics.bytes, writeTail()));
    answer(404, jsonType, '{"error":"/live and /metrics are here"}');

    function answer(status: number, type: string, body: string | Buffer, tail = ''): void {
      response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' });
      if (tail !== '') response.write(body);
      response.end(tail === '' ? body : tail);
    }
  });
  server.maxConnections = 100;
  let hasFailed = false;
  let retry: NodeJS.Timeout | undefined;
  server.on('error', ({ message }) => {
    // A server that listens emits errors of single connections only: no file descriptor was left.
    if (server.listening) return;
    if (!hasFailed) send({ failed: message });
    hasFailed = true;
    // In a deploy the process before may still have the port.
    retry = setTimeout(listen, 1_000).unref();
  });
  server.on('listening', () => {
    const address = server.address() as { port: number };
    send({ listening: address.port });
  });
  listen();

  function listen(): void {
    server.unref().listen({ port, host, exclusive: true });
  }

  /** Resolves with the main thread's answer, at once while it is stuck, and in time in any case. */
  async function freshMetrics(): Promise<void> {
    if (observe().blocked !== null) return;
    await new Promise<void>((resolve) => {
      waiting.push(resolve);
      if (waiting.length > 1) return;
      send({ wants: 'metrics' });
      setTimeout(wake, maxScrapeMs).unref();
    });
  }

  function wake(): void {
    const woken = waiting;
    waiting = [];
    for (const resolve of woken) resolve();
  }

  function writeTail(): string {
    const name = 'perf_eventloop_beat_age_seconds';
    const ageSeconds = observe().beatAgeMs / 1_000;
    return `# HELP ${name} Time since the event loop last turned.\n# TYPE ${name} gauge\n${name} ${ageSeconds}\n${metrics.end}`;
  }

  return {
    receive({ type, body }) {
      const end = body.endsWith('# EOF\n') ? '# EOF\n' : '';
      metrics = { type, bytes: Buffer.from(body.slice(0, body.length - end.length)), end };
      wake();
    },
    close() {
      clearTimeout(retry);
      server.close();
      server.closeAllConnections();
    },
  };
}
