import { Logger } from '@nestjs/common';
import { boolean, object, choice, type Resolved } from '../core/option.js';
import { timeout } from '../core/shared-options.js';
import { forUser, type Verdict } from '../core/verdict.js';
import type { BlockRecord, PerfRecord, RequestRecord, VerdictRecord } from '../core/record.js';
import { printable, printableData } from '../core/printable.js';
import { RunningApplications } from '../core/running-applications.js';
import type { PerfSink, PerfSinkHost } from '../core/sink.js';
import { blockLines, nameBlockKind, repeatedFields, repeatedText } from './block-lines.js';
import { formatFor, LogObject, type LogFormat } from './log-format.js';
import { Repeats } from './repeats.js';
import { nameSlowKind, slowAgainFields, slowAgainText, slowFields, slowText } from './slow-lines.js';
import { Summaries, summaryText } from './summary.js';

/** A curl line may contain a body. */
const MAX_LINE = 100_000;

export interface LoggerSinkOptions {
  /**
   * `'text'` writes lines for people, `'object'` one structured object a message for JSON loggers, `'auto'` the latter
   * when the application's logger is `nestjs-pino`'s. Nest's `ConsoleLogger` with `json: true` needs `'object'`.
   * @default 'auto'
   */
  format?: 'auto' | LogFormat;
  /**
   * Between two summaries of the routes and of repeated blocks and slow requests, milliseconds.
   * @default 60000
   */
  summaryMs?: number;
  /**
   * Puts the user's id (`unit`) on the lines and objects of slow requests and verdicts. It is personal data: logs are kept, and read by
   * many.
   * @default false
   */
  unit?: boolean;
}

const shape = object({
  format: choice(['auto', 'text', 'object'], { default: 'auto' }),
  summaryMs: timeout({ default: 60_000 }),
  unit: boolean({ default: false }),
});

/**
 * Writes through Nest's `Logger`, so that nestjs-pino and JSON loggers work: the first block of a place and the first slow request of
 * a route are warnings at once; every minute there is one line for those that were repeated, and one summary of the traffic.
 * @throws PERF_ERR_OPTION
 */
export const loggerSink = (given: LoggerSinkOptions = {}): PerfSink => new LoggerSink(shape.read(given, 'loggerSink'));

class LoggerSink implements PerfSink {
  readonly name = 'logger';
  readonly requests = 'slow';
  private readonly logger = new Logger('Perf');
  private readonly blocks = new Repeats(nameBlockKind);
  private readonly slow = new Repeats(nameSlowKind);
  /** Detected once for each logger: the detection resolves a package. */
  private detected: { readonly logger: unknown; readonly format: LogFormat } | null = null;
  private readonly running = new RunningApplications<{
    readonly summaries: Summaries;
    readonly timer: NodeJS.Timeout;
  }>();

  constructor(private readonly options: Resolved<typeof shape>) {}

  start(host: PerfSinkHost): void {
    const { summaryMs } = this.options;
    const summaries = new Summaries(summaryMs);
    const timer = setInterval(() => {
      this.logRepeated();
      const summary = summaries.next(host);
      if (summary !== null) this.write('log', [summaryText(summary)], summary);
    }, summaryMs).unref();
    this.running.add(host, { summaries, timer });
  }

  publish(records: readonly PerfRecord[]): void {
    for (const record of records) {
      if (record.kind === 'block') this.logBlock(record);
      else if (record.kind === 'request' && record.slow === true) this.logSlow(record);
      else if (record.kind === 'verdict') this.logVerdict(record);
    }
  }

  async close(host?: PerfSinkHost): Promise<void> {
    clearInterval(this.running.take(host)?.timer);
    this.logRepeated();
  }

  private logBlock(record: BlockRecord): void {
    for (const { summaries } of this.running.values) summaries.blocked(record);
    if (this.blocks.isNew(record)) this.write('warn', blockLines(record), { event: 'event_loop_block', ...record });
  }

  private logSlow(record: RequestRecord): void {
    if (!this.slow.isNew(record)) return;
    const { unit } = this.options;
    this.write('warn', [slowText(record, unit)], slowFields(record, unit));
  }

  private logVerdict({ verdict: given }: VerdictRecord): void {
    const verdict = this.options.unit ? given : withoutUser(given);
    const isWarning = verdict.kind === 'worse' && verdict.state === 'active';
    this.write(isWarning ? 'warn' : 'log', [verdict.text], { event: 'verdict', ...verdict });
  }

  private logRepeated(): void {
    for (const repeated of this.blocks.take()) this.write('warn', [repeatedText(repeated)], repeatedFields(repeated));
    const slow = this.slow.take();
    if (slow.length > 0) this.write('warn', [slowAgainText(slow)], slowAgainFields(slow));
  }

  /** Never throws: an error of the application's logger in a timer would end the process. Texts contain input of clients. */
  private write(level: 'log' | 'warn', lines: readonly string[], fields: object): void {
    const text = lines.map((line) => printable(line, MAX_LINE)).join('\n  ');
    try {
      this.logger[level](this.format() === 'text' ? text : new LogObject(text, printableData(fields) as object));
    } catch {
      // The logger itself has failed: there is no other place for this line.
    }
  }

  /** Read for each line: the application may set its logger after the sink was made. */
  private format(): LogFormat {
    if (this.options.format !== 'auto') return this.options.format;
    const logger: unknown = this.logger.localInstance;
    if (this.detected === null || this.detected.logger !== logger)
      this.detected = { logger, format: formatFor(logger) };
    return this.detected.format;
  }
}

function withoutUser(verdict: Verdict): Verdict {
  const { scope, who, text, ...rest } = verdict;
  if (scope !== 'users' || typeof who !== 'string') return verdict;
  return { ...rest, scope, who: null, text: text.replace(forUser(who), () => 'for one user') };
}
