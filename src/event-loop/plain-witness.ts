import { guarded, type RawResponse } from '../core/guarded.js';
import { listen, type Listener } from '../core/own-listener.js';
import { describeReason } from '../core/reason.js';
import type { PerfApplication } from '../request/application.js';
import type { Feature } from '../request/feature.js';

const LIVE: RawResponse = {
  status: 200,
  type: 'application/json; charset=utf-8',
  body: '{"beatAgeMs":0,"blocked":null}',
};

/**
 * Answers at `eventLoop.port` while a switch keeps the event loop from being watched: probes of a manifest must not restart the pods. It runs
 * on the main thread, without a timer: an answer proves that the loop turns.
 */
export class PlainWitness implements Feature {
  private listener: Listener | null = null;
  private metrics: (() => Promise<Pick<RawResponse, 'type' | 'body'>>) | null = null;

  constructor(
    private readonly at: { readonly port: number; readonly host: string },
    private readonly application: Pick<PerfApplication, 'logger' | 'report'>,
  ) {}

  /** Serves what `read` returns at `/metrics`. */
  expose(read: () => Promise<Pick<RawResponse, 'type' | 'body'>>): void {
    this.metrics ??= read;
  }

  /** Never rejects: an application without its witness still serves. */
  async start(): Promise<void> {
    const { at, application, metrics } = this;
    const place = `\`eventLoop: { port: ${at.port}, host: '${at.host}' }\``;
    const warn = (what: string): void => application.report.report(`${place} ${what}`, `${place} ${what}.`);
    const read = metrics === null ? null : async () => ({ status: 200, ...(await metrics()) });
    const answers = {
      '/live': async () => LIVE,
      ...(read && { '/metrics': guarded(null, read, (reason) => warn(`could not read the metrics: ${reason}`)) }),
    };
    try {
      this.listener = await listen(at, answers, () => warn('is taken, and is tried again every second'));
    } catch (error) {
      return warn(`is not served: ${describeReason(error)}`);
    }
    const { port } = this.listener;
    const host = at.host.includes(':') ? `[${at.host}]` : at.host;
    if (port !== null)
      application.logger.log(
        `The event loop is not watched: GET http://${host}:${port}/live is answered by the main thread, with 200 while the loop turns.`,
      );
  }

  async close(): Promise<void> {
    await this.listener?.close();
  }
}
