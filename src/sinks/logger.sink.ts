import { ConsoleLogger, Logger } from '@nestjs/common';
import type { BlockRecord, PerfRecord, RequestRecord } from '../core/record.js';
import type { PerfSink, PerfSinkHost } from '../core/sink.js';
import { blockText, RepeatedBlocks } from './block-lines.js';
import { summaryFields, summaryText } from './summary.js';

const SUMMARY_EVERY_MS = 60_000;
const DEFAULT_SLOW_MS = 1_000;
const CONTEXT = 'Perf';

export interface LoggerSinkOptions {
  /**
   * `'text'` writes lines for people, `'object'` one structured object a message for JSON loggers, `'auto'` the latter
   * when the application's logger is Nest's `ConsoleLogger` with `json: true`.
   * @default 'auto'
   */
  format?: 'auto' | 'text' | 'object';
}

/**
 * Writes through Nest's `Logger`, so that nestjs-pino and JSON loggers work: blocks and slow requests as warnings, one
 * summary a minute when there was traffic.
 */
export function loggerSink(options: LoggerSinkOptions = {}): PerfSink {
  return new LoggerSink(options.format ?? 'auto');
}

class LoggerSink implements PerfSink {
  readonly name = 'logger';
  readonly requests = 'slow';
  private readonly logger = new Logger(CONTEXT);
  private host: PerfSinkHost | null = null;
  private timer: NodeJS.Timeout | null = null;
  private requestsAtSummary = 0;
  private readonly blocks = new RepeatedBlocks();

  constructor(private readonly format: 'auto' | 'text' | 'object') {}

  start(host: PerfSinkHost): void {
    this.host = host;
    this.timer = setInterval(() => {
      this.tellRepeatedBlocks();
      this.summarise();
    }, SUMMARY_EVERY_MS).unref();
  }

  publish(records: readonly PerfRecord[]): void {
    const slowMs = this.host?.slowMs ?? DEFAULT_SLOW_MS;
    for (const record of records) {
      if (record.kind === 'block') this.warnBlock(record);
      else if (record.kind === 'request' && record.outcome === 'completed' && record.durationMs > slowMs)
        this.warnSlow(record);
    }
  }

  async close(): Promise<void> {
    if (this.timer !== null) clearInterval(this.timer);
    this.timer = null;
    this.tellRepeatedBlocks();
  }

  private warnBlock(record: BlockRecord): void {
    if (this.blocks.isNew(record)) this.write('warn', blockText(record), { event: 'event_loop_block', ...record });
  }

  private tellRepeatedBlocks(): void {
    for (const text of this.blocks.takeRepeated()) this.write('warn', text, { event: 'event_loop_blocks_repeated' });
  }

  private warnSlow(record: RequestRecord): void {
    const handler = record.handler === null ? '' : ` (${record.handler})`;
    const route = record.route === '' ? '(no route)' : record.route;
    const note = [
      record.note?.rows === undefined ? '' : `, ${record.note.rows} rows`,
      record.note?.bytes === undefined ? '' : `, ${record.note.bytes} bytes`,
    ].join('');
    const text =
      `${record.method} ${route}${handler} took ${record.durationMs.toFixed(0)} ms: status ${record.status}, ` +
      `blocked the loop ${record.blockedMs.toFixed(0)} ms, waited for others' blocks ${record.delayedMs.toFixed(0)} ms${note} [${record.id}]`;
    this.write('warn', text, { event: 'slow_request', ...record });
  }

  private summarise(): void {
    const snapshot = this.host?.snapshot();
    if (snapshot === undefined) return;
    const requests = snapshot.routes.reduce((sum, route) => sum + route.count, 0);
    const fresh = requests - this.requestsAtSummary;
    this.requestsAtSummary = requests;
    if (fresh > 0) this.write('log', summaryText(snapshot, fresh), summaryFields(snapshot, fresh));
  }

  private write(level: 'log' | 'warn', text: string, fields: object): void {
    if (this.wantsObjects()) this.logger[level]({ msg: text, ...fields });
    else this.logger[level](text);
  }

  private wantsObjects(): boolean {
    if (this.format !== 'auto') return this.format === 'object';
    // Asked each time: the application may set its logger after the sink was made.
    const current: unknown = this.logger.localInstance;
    return (
      current instanceof ConsoleLogger &&
      (current as unknown as { options?: { json?: boolean } }).options?.json === true
    );
  }
}
