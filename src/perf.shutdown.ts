import type { Server } from 'node:http';
import { reasonOf } from './core/reason.js';
import type { ResolvedOptions } from './perf.options.js';
import type { PerfApplication } from './request/application.js';
import type { Feature } from './request/feature.js';
import { afterServerClosed, endKeptConnections, onTermination, whenListening } from './request/shutdown.js';

/** Requests in flight have as long as deferred work, and no less than this. */
const LEAST_REQUESTS_MS = 1_000;
/** With `defer: false`. */
const USUAL_REQUESTS_MS = 10_000;

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
  private readonly steps = new Map<string, number>();
  private readonly requestsMs: number;
  private server: Server | null = null;
  private isLeaving = false;
  private stopping: Promise<void> | null = null;
  private ignoreTermination: () => void = () => {};
  /** Monotonic milliseconds of the last mark. */
  private markedMs = 0;
  /** Monotonic milliseconds at which the server began to close. The wait before is the user's own; null before. */
  private closingMs: number | null = null;

  constructor(private readonly parts: Parts) {
    this.requestsMs = Math.max(LEAST_REQUESTS_MS, parts.options.defer?.drainTimeoutMs ?? USUAL_REQUESTS_MS);
  }

  /** True from SIGTERM or `app.close()` on, whichever comes first. */
  get begun(): boolean {
    return this.isLeaving;
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
    afterServerClosed(server, {
      closing: () => this.startDeadline(),
      late: { afterMs: this.requestsMs, work: () => this.drainEarly() },
      closed: () => this.stop(),
    });
    whenListening(server, (isProtected) => {
      if (this.isStopping) return;
      if (isProtected) this.ignoreTermination = onTermination(() => this.begin());
      else
        this.parts.application.logger.warn(
          'SIGTERM would end this process without draining deferred work or flushing records. Call `app.enableShutdownHooks()` in main.ts.',
        );
    });
  }

  /** The application begins to close, and may still serve requests. */
  async closing(): Promise<void> {
    this.begin();
    this.mark('waited');
    if (this.server !== null) endKeptConnections(this.server);
    for (const feature of this.parts.features()) await this.isolated('closing', () => feature.closing?.());
    this.mark('took no new jobs');
  }

  /** Drains, flushes and closes everything once; later calls wait for the first. Never rejects. */
  stop(): Promise<void> {
    return (this.stopping ??= this.stopOnce());
  }

  private async stopOnce(): Promise<void> {
    const { application, options, features, booted } = this.parts;
    this.begin();
    this.startDeadline();
    this.mark('closed the server');
    this.ignoreTermination();
    // An application may be closed while it boots: what is only half there could not be closed.
    await booted();
    const lastFirst = features().toReversed();
    for (const feature of lastFirst)
      await this.isolated('draining', () => feature.drain?.(this.drainLeftMs, this.flushLeftMs));
    this.mark('drained');
    await this.isolated('flushing', () => application.recorder.close(this.flushLeftMs));
    for (const feature of lastFirst) await this.isolated('closing', () => feature.close?.(this.flushLeftMs));
    this.mark('flushed');
    if (options.enabled && this.steps.has('took no new jobs')) application.logger.log(this.describe());
  }

  /** A stream or a long request keeps the server open: accepted work is not lost with the process. */
  private async drainEarly(): Promise<void> {
    const { application, features } = this.parts;
    application.logger.warn(
      `The server has not closed within ${this.requestsMs} ms: open requests go on, deferred work is drained and records are flushed now.`,
    );
    for (const feature of features())
      if (feature.drainsEarly === true) await this.isolated('draining', () => feature.drain?.(this.drainLeftMs, 0));
    await this.isolated('flushing', () => application.recorder.flush(this.flushLeftMs));
  }

  private begin(): void {
    if (this.isLeaving) return;
    this.isLeaving = true;
    this.markedMs = this.parts.application.nowMs();
  }

  private startDeadline(): void {
    if (this.closingMs !== null) return;
    this.mark('waited');
    this.closingMs = this.markedMs;
  }

  /** Adds the time since the last mark to this step. */
  private mark(step: string): void {
    const nowMs = this.parts.application.nowMs();
    this.steps.set(step, (this.steps.get(step) ?? 0) + nowMs - this.markedMs);
    this.markedMs = nowMs;
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

  private describe(): string {
    const steps = [...this.steps].map(([step, ms]) => `${step} ${seconds(ms)}`).join(', ');
    const tookMs = this.markedMs - this.closingMs!;
    return `Shutdown: not ready, ${steps}. ${seconds(tookMs)} after the wait, ${seconds(this.totalMs)} at most.`;
  }

  /** One feature that fails to close keeps no other from closing. */
  private async isolated(doing: string, work: () => void | Promise<void> | undefined): Promise<void> {
    try {
      await work();
    } catch (error) {
      const { logger } = this.parts.application;
      logger.warn(`${doing} failed: ${reasonOf(error)}. Everything else is closed all the same.`);
    }
  }
}

const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`;
