import { Logger } from '@nestjs/common';
import { afterEach, expect, it } from 'vitest';
import { loggerSink } from '../../../src/index.js';
import { verdictRecord } from '../../fixtures/records.js';

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
