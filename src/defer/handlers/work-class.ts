import type { Type } from '@nestjs/common';
import type { AnyWork } from './work-providers.js';

/** Whether a function is a class of work, rather than a task. */
export function isClass(work: object): work is Type<AnyWork> {
  const { prototype } = work as { prototype?: { run?: unknown; runBatch?: unknown } };
  const isWork = [prototype?.run, prototype?.runBatch].some((method) => typeof method === 'function');
  return isWork || /^class\b/.test(Function.prototype.toString.call(work));
}
