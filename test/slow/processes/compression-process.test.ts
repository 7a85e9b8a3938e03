import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import type { CompressionReport } from '../../fixtures/compression.process.js';
import { nodeBinaries } from '../../fixtures/node-versions.js';

const LONG = process.env['PERF_LONG'] !== undefined;
const ROUNDS = LONG ? 60 : 2;
const file = fileURLToPath(new URL('../../../build/test/fixtures/compression.process.js', import.meta.url));

describe.each(nodeBinaries())('compression on $name', ({ execPath, major }) => {
  it.each(LONG ? ['1', '2', undefined] : ['1'])(
    'sends every body right with a thread pool of %s',
    async (pool) => {
      // `undefined` leaves the pool as it is by default, four threads.
      const { UV_THREADPOOL_SIZE: _inherited, ...inherited } = process.env;
      const env = pool === undefined ? inherited : { ...inherited, UV_THREADPOOL_SIZE: pool };
      const { stdout } = await promisify(execFile)(execPath, [file, String(ROUNDS)], { env, timeout: 300_000 });
      const report = JSON.parse(stdout) as CompressionReport;
      expect(report).toMatchObject({ wrong: [], node: expect.stringMatching(`^v${major}\\.`) as string });
      if (pool !== undefined) expect(report.slots).toBe(1);
      const { codings } = report;
      expect(codings).toBe(major >= 24 ? 5 : major === 20 ? 4 : codings);
      expect(report.responses).toBeGreaterThanOrEqual(2 * ROUNDS * 6 * codings);
      // All but identity.
      expect(report.compressed).toBeGreaterThanOrEqual(2 * ROUNDS * 6 * (codings - 1));
      expect(report.cacheHits).toBeGreaterThan(0);
    },
    LONG ? 300_000 : 120_000,
  );
});
