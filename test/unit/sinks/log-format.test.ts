import { mkdtempSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ConsoleLogger, Logger } from '@nestjs/common';
import { afterEach, describe, expect, it } from 'vitest';
import { loggerSink } from '../../../src/index.js';
import { formatFor, type LogObject, pinoLogger } from '../../../src/sinks/log-format.js';
import { blockRecord, requestRecord } from '../../fixtures/records.js';
import { FakeHost } from '../../fixtures/sink-host.js';

class PinoLogger {}
const from = process.cwd();
afterEach(() => {
  process.chdir(from);
  Logger.overrideLogger(true);
});

describe('the format of log lines', () => {
  it.each([
    ['Nest’s logger on a terminal', new ConsoleLogger(), 'text'],
    ['nestjs-pino’s', new PinoLogger(), 'object'],
    ['one that is not known', { log() {} }, 'text'],
  ])('%s', (_name, logger, format) => {
    expect(formatFor(logger, () => PinoLogger)).toBe(format);
    if (!(logger instanceof PinoLogger)) expect(formatFor(logger, () => null)).toBe(format);
  });

  it('finds nestjs-pino where the application has it', () => {
    expect(pinoLogger()).toBeNull();
    const folder = mkdtempSync(join(tmpdir(), 'perf-pino-'));
    const own = join(folder, 'node_modules', 'nestjs-pino');
    mkdirSync(own, { recursive: true });
    writeFileSync(join(own, 'index.js'), 'exports.Logger = class Logger {};');
    process.chdir(folder);
    expect(pinoLogger()?.name).toBe('Logger');
    process.chdir(from);
    rmSync(folder, { recursive: true });
  });

  it('refuses an unknown one', () => {
    expect(() => loggerSink({ format: 'json' as never })).toThrow(
      'PERF_ERR_OPTION: `loggerSink.format` must be one of `"auto"`, `"text"`, `"object"`, got `"json"` (string).',
    );
  });
});

describe('an object for JSON loggers', () => {
  it('has fields on every line, repeats too, and reads as its line', async () => {
    const lines: LogObject[] = [];
    const keep = (message: LogObject): void => void lines.push(message);
    Logger.overrideLogger({ log: keep, warn: keep, error: keep });
    const sink = loggerSink({ format: 'object' });
    await sink.start?.(new FakeHost());
    const slow = requestRecord({ slow: true, durationMs: 2_000 });
    await sink.publish([blockRecord(), blockRecord(), slow, slow, slow]);
    await sink.close?.();
    expect(lines).toMatchObject([
      { event: 'event_loop_block', cause: 'javascript', durationMs: 120 },
      { event: 'slow_request', route: '/users/:id', durationMs: 2_000 },
      { event: 'event_loop_blocks_repeated', cause: 'javascript', route: '/users/:id', count: 1 },
      { event: 'slow_requests_repeated', routes: [{ method: 'GET', route: '/users/:id', count: 2, maxMs: 2_000 }] },
    ]);
    for (const line of lines) expect(line.toString()).toBe(line.msg);
    expect(lines[3]!.msg).toBe('2 more slow requests: 2 × GET /users/:id (UsersController.findOne), up to 2000 ms');
  });

  it('has no field that pino writes itself, which would stand twice on the line', async () => {
    const lines: object[] = [];
    const keep = (message: object): void => void lines.push(message);
    Logger.overrideLogger({ log: keep, warn: keep, error: keep });
    const sink = loggerSink({ format: 'object' });
    await sink.start?.(new FakeHost());
    const time = { upstreamMs: 1_500, poolWaitMs: 0, idleMs: 400, busyMs: 100, upstreamBusyMs: 0, unplacedCalls: 0 };
    await sink.publish([blockRecord(), requestRecord({ slow: true, time })]);
    await sink.close?.();
    for (const line of lines) {
      for (const own of ['level', 'time', 'pid', 'hostname', 'context']) expect(line).not.toHaveProperty(own);
    }
    expect(lines[1]).toMatchObject({ event: 'slow_request', requestTime: time });
  });
});
