import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, inject, it } from 'vitest';
import { adapters } from '../../fixtures/app.js';
import type { PollutedReport } from '../../fixtures/polluted/main.js';

const MODULE_PATHS = ['GET /metrics', 'GET /perf', 'GET /perf/snapshot'];

describe('where every object and array has an enumerable property more', { timeout: 180_000 }, () => {
  it.each(adapters)('an application on %s boots with everything on, answers, records and defers', async (adapter) => {
    const script = join(inject('compiledFixtures'), 'polluted/main.js');
    const { stdout } = await promisify(execFile)(process.execPath, [script, adapter], { timeout: 170_000 });
    const { answers, records, worked, compressed, variants, gates, complaints, keysOfAnObject } = JSON.parse(
      stdout,
    ) as PollutedReport;
    expect(keysOfAnObject).toEqual(['extend']);
    const failed = Object.entries(answers).filter(([, { status }]) => status !== 200 && status !== 201);
    expect(failed).toEqual([]);
    expect(Object.keys(answers)).toHaveLength(11 + MODULE_PATHS.length);
    expect(JSON.parse(answers['GET /plain/1?a=b']!.text)).toEqual({ id: '1', query: { a: 'b' } });
    expect(JSON.parse(answers['GET /request/1']!.text)).toEqual({ id: '1', method: 'GET' });
    expect(JSON.parse(answers['POST /body']!.text)).toEqual({ body: { a: [1] } });
    expect(JSON.parse(answers['GET /offloaded']!.text)).toEqual({ total: 2 });
    expect(JSON.parse(answers['GET /shared']!.text)).toEqual(JSON.parse(answers['GET /large']!.text));
    expect(records).toEqual([
      'GET /cached/:id 200',
      'GET /experiment 200',
      'GET /guarded 200',
      'GET /large 200',
      'GET /offloaded 200',
      'GET /plain/:id 200',
      'GET /request/:id 200',
      'GET /shared 200',
      'POST /body 201',
      'POST /inline-work 201',
      'POST /work 201',
    ]);
    expect(worked.toSorted()).toEqual(['class {"ok":true}', 'function', 'inline {"ok":true}']);
    expect(compressed).toBeGreaterThanOrEqual(2);
    expect([variants, gates]).toEqual([['on'], ['new_index']]);
    for (const path of MODULE_PATHS) expect(answers[path]!.text).not.toMatch(/\bextend\b/);
    expect(complaints.filter((line) => /extend|is not an option|TypeError/.test(line))).toEqual([]);
  });
});
