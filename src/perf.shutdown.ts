import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { describeReason } from './core/reason.js';
import { listenShared } from './core/shared-listener.js';
import type { ResolvedOptions } from './perf.options.js';
import type { PerfApplication } from './request/application.js';
import type { Feature } from './request/feature.js';

/** Requests in flight have `defer.drainTimeoutMs` to end, at least this, and with `defer: false` the usual time. */
const LEAST_REQUESTS_MS = 1_000;
const USUAL_REQUESTS_MS = 10_000;
/** A shorter wait is left out of the log line. */
const SHOWN_MS = 50;
/** Routes of open requests that the warning names. */
const MOST_NAMED = 5;

interface Parts {
  readonly options: ResolvedOptions;
  readonly application: PerfApplication;
  /** In the order of their boot; empty before it. */
  readonly features: () => readonly Feature[];
  /** Resolves when the boot has ended, well or not. */
  readonly booted: () => Promise<unknown>;
}

/**
 * The clean end of an application: not ready, no new jobs, the server closes, deferred work drains, records are flushed. One deadline
 * from the moment at which the server closes, and one line of the log.
 */
export class Shutdown {
  /** The steps of the log line, with their times, in the order in which they ended. */
  private readonly steps: string[] = [];
  /** When the last step ended, monotonic milliseconds. */
  private markedMs = 0;
  private readonly requestsMs: number;
  private server: Server | null = null;
  /** True from SIGTERM or `app.close()` on, whichever comes first. */
  begun = false;
  private stopping: Promise<void> | null = null;
  private ignoreTermination: () => void = () => {};
  /** When the server began to close, monotonic milliseconds; null before. Deadlines begin here, after the application's own hooks. */
  private closingMs: number | null = null;

  constructor(private readonly parts: Parts) {
    this.requestsMs = Math.max(LEAST_REQUESTS_MS, parts.options.defer?.drainTimeoutMs ?? USUAL_REQUESTS_MS);
  }

  get isStopping(): boolean {
    return this.stopping !== null;
  }

  /** Whether the adapter will close a server, after which everything stops. */
  get isListening(): boolean {
    return this.server?.listening === true;
  }

  watch(server: Server | undefined): void {
    if (typeof server?.close !== 'function') return;
    this.server = server;
    this.stopAfter(server);
    server.once('listening', () => {
      // main.ts may call `enableShutdownHooks()` right after `await app.listen()`.
      setImmediate(() => this.expectTermination());
    });
  }

  /**
   * Stops when the server has closed, through its `close()`, which adapters await. Nest has no hook after the last response but
   * `onApplicationShutdown`, in which providers end the connections that deferred work needs.
   */
  private stopAfter(server: Server): void {
    const close = server.close.bind(server);
    server.close = (done) => {
      this.startDeadline();
      const timer = setTimeout(() => void this.drainEarly(), this.requestsMs).unref();
      return close((error) => {
        clearTimeout(timer);
        const finish = (): void => done?.(error);
        // eslint-disable-next-line promise/no-promise-in-callback -- Node's `close()` returns no promise
        this.stop().then(finish, finish);
      });
    };
  }

  private expectTermination(): void {
    if (this.isStopping) return;
    if (process.listenerCount('SIGTERM') === 0) {
      this.parts.application.logger.warn(
        'SIGTERM would end this process without draining deferred work or flushing records. Call `app.enableShutdownHooks()` in main.ts.',
      );
      return;
    }
    // Ahead of Nest's listener, so that `ready()` is false at once. Nest signals again at the end: a listener would swallow that.
    const begin = (): void => {
      this.ignoreTermination();
      this.begin();
    };
    this.ignoreTermination = listenShared(process, 'SIGTERM', begin, 'prependListener');
  }

  /** The application begins to close, and may still serve requests. */
  async closing(): Promise<void> {
    this.begin();
    this.mark('waited', SHOWN_MS);
    // Node's `close()` would wait for kept-alive connections: from now on each answer ends its own.
    for (const { request, response } of this.parts.application.requests.states()) endConnection(request, response);
    this.server?.prependListener('request', endConnection);
    for (const feature of this.parts.features()) await this.isolated('closing', () => feature.closing?.());
    this.mark('took no new jobs', SHOWN_MS);
  }

  /** Drains, flushes and closes everything once; later calls wait for the first. Never rejects. */
  stop(): Promise<void> {
    return (this.stopping ??= this.stopOnce());
  }

  private async stopOnce(): Promise<void> {
    const { application, options, features, booted } = this.parts;
    const isOrderly = this.begun;
    this.begin();
    this.startDeadline();
    this.mark('closed the server');
    this.ignoreTermination();
    // An application may be closed while it boots: features that are being made would stay open.
    await booted();
    const lastFirst = features().toReversed();
    for (const feature of lastFirst)
      await this.isolated('draining', () => feature.drain?.(this.drainLeftMs, this.flushLeftMs));
    this.mark('drained deferred work');
    await this.isolated('flushing', () => application.recorder.close(this.flushLeftMs));
    for (const feature of lastFirst) await this.isolated('closing', () => feature.close?.(this.flushLeftMs));
    this.mark('flushed records');
    const tookMs = application.nowMs() - this.closingMs!;
    // Without `closing()`, the boot has failed: its error is in the log.
    if (options.enabled && isOrderly)
      application.logger.log(
        `Shutdown: ${this.steps.join(', ')}. From closing the server on it took ${seconds(tookMs)}, of ${seconds(this.totalMs)} at most.`,
      );
  }

  /** Drains while a stream or a long request keeps the server open: the process may be killed before it closes. */
  private async drainEarly(): Promise<void> {
    const { application, features } = this.parts;
    application.logger.warn(
      `The server has not closed within ${this.requestsMs} ms. Still open: ${this.describeOpen()}. They go on, deferred work is drained and ` +
        'records are flushed now. End streams in `onModuleDestroy()`, or set `forceCloseConnections`.',
    );
    for (const feature of features()) await this.isolated('draining', () => feature.drainEarly?.(this.drainLeftMs));
    await this.isolated('flushing', () => application.recorder.flush(this.flushLeftMs));
  }

  private begin(): void {
    if (this.begun) return;
    this.begun = true;
    this.markedMs = this.parts.application.nowMs();
  }

  private startDeadline(): void {
    if (this.closingMs !== null) return;
    this.mark('waited', SHOWN_MS);
    this.closingMs = this.markedMs;
  }

  private mark(name: string, leastMs = 0): void {
    const nowMs = this.parts.application.nowMs();
    const ms = nowMs - this.markedMs;
    if (ms >= leastMs) this.steps.push(`${name} ${seconds(ms)}`);
    this.markedMs = nowMs;
  }

  /** `'2 × GET /events, 1 × POST /import'` */
  private describeOpen(): string {
    const counts = new Map<string, number>();
    for (const { route, response } of this.parts.application.requests.states()) {
      const name = route === null ? 'a request' : route.name;
      if (response !== null) counts.set(name, (counts.get(name) ?? 0) + 1);
    }
    const open = [...counts].slice(0, MOST_NAMED).map(([name, count]) => `${count} × ${name}`);
    return open.length === 0 ? 'connections without a request' : open.join(', ');
  }

  private get drainLeftMs(): number {
    return this.left(this.requestsMs + this.drainMs);
  }

  private get flushLeftMs(): number {
    return Math.min(this.parts.options.flushTimeoutMs, this.left(this.totalMs));
  }

  private get drainMs(): number {
    return this.parts.options.defer?.drainTimeoutMs ?? 0;
  }

  private get totalMs(): number {
    return this.requestsMs + this.drainMs + this.parts.options.flushTimeoutMs;
  }

  private left(ms: number): number {
    const nowMs = this.parts.application.nowMs();
    return Math.max(0, (this.closingMs ?? nowMs) + ms - nowMs);
  }

  /** Runs a step of one feature: its failure is a warning, and the others go on. */
  private async isolated(doing: string, work: () => void | Promise<void> | undefined): Promise<void> {
    try {
      await work();
    } catch (error) {
      const { logger } = this.parts.application;
      logger.warn(`${doing} failed: ${describeReason(error)}. Everything else is closed all the same.`);
    }
  }
}

function endConnection(request: IncomingMessage | null, response: ServerResponse | null): void {
  if (request?.httpVersionMajor === 1 && response?.headersSent === false) response.setHeader('connection', 'close');
}

const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`;
