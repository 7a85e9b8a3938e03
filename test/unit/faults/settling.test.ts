import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, inject, it } from 'vitest';

describe('a process that nothing else keeps', () => {
  it.each(['settle', 'idle'])(
    'does not end while it waits for its deferred work (%s), and ends after it',
    async (wait) => {
      const script = join(inject('compiledFixtures'), 'settling.process.js');
      const { stdout } = await promisify(execFile)(process.execPath, [script, wait], { timeout: 50_000 });
      expect(stdout).toBe('[1,2]\n');
    },
  );
});
