import { describe, optionError } from '../../core/option.js';
import { PerfError } from '../../core/perf.error.js';
import type { DeferWorkOptions } from '../deferred-work.js';
import { readWorkOptions } from '../work-options.js';

const DURABLE_WORK_METADATA = 'perf:durable-work';

/** The name under which jobs of a class travel, and the options of every use of it. */
export interface DurableDeclaration {
  readonly name: string;
  readonly options: DeferWorkOptions;
}

/**
 * Lets jobs run a class of deferred work: `durable: true` and `enqueue()` need it, and workers run no class without it.
 * @param name travels in the queue; keep it when you rename the class, or jobs that wait are for no class. @default the class's name
 * @param options of every use of the class; a use overrides them. @default those of {@link DeferWorkOptions}
 * @throws PERF_ERR_DECORATOR, PERF_ERR_OPTION where it is applied
 * @example
 * ```ts
 * @Injectable() @DurableWork('send-receipt', { attempts: 3 }) class SendReceipt implements DeferredWork { … }
 * ```
 */
export function DurableWork(name?: string, options: DeferWorkOptions = {}): ClassDecorator {
  return (target) => {
    if (name !== undefined && (typeof name !== 'string' || name === '')) {
      const given = `takes a name and options, got ${describe(name)} as its name`;
      throw new PerfError(
        'PERF_ERR_DECORATOR',
        `@DurableWork on "${target.name}" ${given}. Leave it out for the class's.`,
      );
    }
    if (name === undefined && target.name === '') {
      throw new PerfError('PERF_ERR_DECORATOR', '@DurableWork decorates a class without a name. Pass one to it.');
    }
    const where = `${target.name} @DurableWork`;
    // A copy of what is no object would pass.
    const given: unknown = options;
    if (typeof given !== 'object' || given === null) throw optionError(where, 'an object', given);
    readWorkOptions({ ...options, durable: true }, where);
    const declared: DurableDeclaration = { name: name ?? target.name, options };
    Reflect.defineMetadata(DURABLE_WORK_METADATA, declared, target);
  };
}

/** Null for a class without `@DurableWork` of its own: a subclass is other work than its base. */
export function readDurableWork(type: object): DurableDeclaration | null {
  return (Reflect.getOwnMetadata(DURABLE_WORK_METADATA, type) ?? null) as DurableDeclaration | null;
}

/** Options of one use of a class: its own, overridden by those of the use. A queue is left out where it is not durable. */
export function mergeWorkOptions(type: object, given: DeferWorkOptions | undefined): DeferWorkOptions | undefined {
  const { options } = readDurableWork(type) ?? {};
  if (options === undefined) return given;
  const { queue, ...others } = options;
  const merged = { ...others, ...given };
  return merged.durable === true && queue !== undefined ? { queue, ...merged } : merged;
}
