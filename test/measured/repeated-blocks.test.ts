import { Logger, type LoggerService } from '@nestjs/common';
import { afterEach, describe, expect, it } from 'vitest';
import { loggerSink } from '../../src/index.js';
import { settle } from '../../src/entries/testing.js';
import { either, startApp } from '../fixtures/app.js';
import { BlockersController } from '../fixtures/blockers.controller.js';
import { Load } from '../fixtures/load.js';

describe.each(either('express'))('the log on %s', (adapter) => {
  afterEach(() => Logger.overrideLogger(false));

  // Eight blocks of 70 ms and their verdicts: about 1.5 s.
  it('tells a block of one route, line and cause once, then how often it came again', async ({ skip }) => {
    const lines: string[] = [];
    const keep = (line: unknown): void => void lines.push(String(line));
    const logger: LoggerService = { log: keep, warn: keep, error: keep };
    const test = await startApp(adapter, {
      perf: { sinks: [loggerSink()] },
      metadata: { controllers: [BlockersController] },
      nest: { logger },
    });
    const load = await Load.start(test.port);
    // What a slow machine blocks on meanwhile is logged and recorded like the rest.
    for (let i = 0; i < 20; i++) await load.get('/quick');
    for (let i = 0; i < 8; i++) {
      await load.get(i % 4 === 3 ? '/block/sort?ms=70' : '/later/loop?ms=70');
      await settle(test.app);
    }
    await load.close();
    await test.close();
    const blocks = test.sink.records.filter((record) => record.kind === 'block');

    /** What the log must count as one: told by the records, which every block makes. */
    const counts = new Map<string, number>();
    for (const { cause, request, suspect, location } of blocks) {
      // A process without CPU pauses at any line: those are one.
      const place = [request === null, (request ?? suspect)?.route, location?.replace(/:\d+$/, '')];
      const key = [cause, ...(cause === 'not-scheduled' ? [] : place)].join(' ');
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    const expected = [...counts.values()].filter((count) => count > 1).map((count) => count - 1);
    skip(expected.length === 0, `the machine let none of ${blocks.length} blocks be traced twice`);
    const again = lines.flatMap((line) => {
      const times = /(once more|(\d+) more times) \(\d+ ms in total\)/.exec(line);
      return times === null ? [] : [Number(times[2] ?? 1)];
    });
    const ascending = (a: number, b: number): number => a - b;
    expect(again.toSorted(ascending)).toEqual(expected.toSorted(ascending));
    const first = lines.filter((line) => / for \d+ ms| by \d+ ms/.test(line) && !line.includes('in all'));
    expect(first).toHaveLength(counts.size);
  });
});
