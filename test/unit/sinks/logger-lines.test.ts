import { Logger } from '@nestjs/common';
import { afterEach, expect, it } from 'vitest';
import { loggerSink } from '../../../src/index.js';
import { blockRecord, requestRecord, verdictRecord } from '../../fixtures/records.js';

afterEach(() => Logger.overrideLogger(true));

it('a verdict is one line: a warning when something became worse', async () => {
  const lines: string[] = [];
  const keep = (level: string) => (line: string) => void lines.push(`${level}: ${line}`);
  Logger.overrideLogger({ log: keep('log'), warn: keep('warn'), error: keep('error') });
  const { verdict } = verdictRecord();
  await loggerSink().publish([
    verdictRecord(),
    verdictRecord({ state: 'resolved', text: 'resolved after 40 minutes' }),
  ]);
  expect(lines).toEqual([`warn: ${verdict.text}`, 'log: resolved after 40 minutes']);
});

const HOSTILE = 'bob\r\n\u001b[2K\u001b[31mLOG [Nest] all is well\u2028root: x\u009b31m\u202e';
const SHOWN = 'bob\\u000d\\u000a\\u001b[2K\\u001b[31mLOG [Nest] all is well\\u2028root: x\\u009b31m\\u202e';

it('what clients and other pods have chosen writes no line of its own, and commands no terminal', async () => {
  const lines: string[] = [];
  const keep = (line: string): void => void lines.push(line);
  Logger.overrideLogger({ log: keep, warn: keep, error: keep });
  const ref = { ...blockRecord().request!, route: `/${HOSTILE}`, handler: HOSTILE };
  await loggerSink().publish([
    verdictRecord({ text: `worse since 2026-11-24 05:52 UTC; for user ${HOSTILE}` }),
    requestRecord({ route: `/${HOSTILE}`, handler: HOSTILE, id: HOSTILE, slow: true }),
    blockRecord({ request: ref, location: HOSTILE, stack: [HOSTILE], curl: `curl '${HOSTILE}'` }),
  ]);
  expect(lines).toHaveLength(3);
  expect(lines[0]).toBe(`worse since 2026-11-24 05:52 UTC; for user ${SHOWN}`);
  for (const line of lines) {
    // The curl line stands below the block.
    // oxlint-disable-next-line no-control-regex
    expect(line.replace('\n  curl', '')).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202e]/);
    expect(line).toContain(SHOWN);
  }
});

it('nor does a field of a structured line', async () => {
  const objects: object[] = [];
  const keep = (line: object): void => void objects.push(line);
  Logger.overrideLogger({ log: keep, warn: keep, error: keep });
  const record = Object.freeze(requestRecord({ slow: true, unit: { userId: HOSTILE, customIds: { team: HOSTILE } } }));
  await loggerSink({ format: 'object', unit: true }).publish([record]);
  expect(objects).toMatchObject([{ event: 'slow_request', unit: { userId: SHOWN, customIds: { team: SHOWN } } }]);
  expect(record.unit).toEqual({ userId: HOSTILE, customIds: { team: HOSTILE } });
});

it('has ids of users only where `unit` asks for them', async () => {
  const lines: (string | object)[] = [];
  const keep = (line: string | object): void => void lines.push(line);
  Logger.overrideLogger({ log: keep, warn: keep, error: keep });
  const record = requestRecord({ slow: true, unit: { userId: 'ann' } });
  const verdict = verdictRecord({
    scope: 'users',
    who: 'ann',
    text: 'worse: GET /a 100 → 150 ms; for user ann (1 of 6).',
  });
  for (const unit of [false, true])
    for (const format of ['text', 'object'] as const) await loggerSink({ unit, format }).publish([record, verdict]);
  expect(JSON.stringify(lines.slice(0, 4))).not.toContain('ann');
  expect(lines[0]).not.toContain('user ');
  expect(lines[1]).toBe('worse: GET /a 100 → 150 ms; for one user (1 of 6).');
  expect(lines[2]).not.toHaveProperty('unit');
  expect(lines[4]).toMatch(/, user ann, id r-1$/);
  expect(lines[5]).toContain('for user ann');
  expect(lines[6]).toMatchObject({ unit: { userId: 'ann' } });
  expect(lines[7]).toMatchObject({ who: 'ann', text: lines[5] as string });
});
