import type { INestApplicationContext } from '@nestjs/common';
import { PerfRuntime } from '../../perf.runtime.js';

/**
 * Resolves when no request whose response has been ended still awaits its `close`, its deferred work is done, its blocks
 * are classified, and sinks are flushed. Open streams are not waited for.
 */
export async function settle(app: INestApplicationContext): Promise<void> {
  await app.get(PerfRuntime, { strict: false }).settle();
}
