import { findOffloadOptions, inOffloadThread, putOffloadOptions } from '../core/offload-thread.js';
import type { PerfError } from '../core/perf.error.js';
import { decoratedPlace, wrapMethod } from '../request/decorated-method.js';
import { needExtension } from '../request/extension.js';
import { misplaced } from './offload.errors.js';
import { offloadMethodOption, type OffloadMethodOptions } from './offload.options.js';
import { runningInstances } from './offloaded-methods.js';

/** The line to add, for a boot without the extension. */
export const ADD_OFFLOAD = "extensions: [offload({ module: new URL('./offload.module.js', import.meta.url) })]";

type OffloadDecorator = <T extends (...parameters: never[]) => Promise<unknown>>(
  target: object,
  name: string | symbol,
  descriptor: TypedPropertyDescriptor<T>,
) => void;

/**
 * Runs the method in a worker thread, in the same class of an application of the worker's own: rows that it reads from a database
 * arrive there, and only the result travels. Arguments and result are copied, as `structuredClone()` does.
 * For an async method of a provider that is no controller and not request-scoped. In the worker it runs directly.
 * @throws PERF_ERR_OPTION, PERF_ERR_DECORATOR where it is applied; calls reject with PERF_ERR_OFFLOAD_FULL, PERF_ERR_OFFLOAD_DOWN,
 * PERF_ERR_OFFLOAD_TIMEOUT, PERF_ERR_SERIALIZE, PERF_ERR_OFFLOAD, and with errors of the method
 */
export function Offload(options: OffloadMethodOptions = {}): OffloadDecorator {
  return (target, name, descriptor) => {
    const value = (descriptor as PropertyDescriptor | undefined)?.value as unknown;
    if (typeof target === 'function' || typeof name === 'symbol' || typeof value !== 'function')
      throw misplaced(
        decoratedPlace(target, name),
        'it must be a method of an instance, with a name. Move it to one, beneath what leaves an accessor there.',
      );
    const resolved = offloadMethodOption.read(options, `${decoratedPlace(target, name)} @Offload`);
    putOffloadOptions(target, name, resolved);
    if (inOffloadThread()) return;
    needExtension({ name: 'offload', decorator: '@Offload()', add: ADD_OFFLOAD }, target, name);
    wrapMethod(descriptor, (method) => ({
      wrapper(this: unknown, ...parameters: unknown[]): unknown {
        const here = (): unknown => method.apply(this, parameters);
        if (typeof this !== 'object' || this === null) return here();
        const shown = findOffloadOptions(this, name);
        if (shown === undefined) return Promise.reject(calledBySuper(target, name));
        const running = runningInstances.get(this);
        // A decorated override that calls this method runs here by its own `when`.
        if (running === undefined || shown !== resolved) return here();
        return running.runMethod(this, name, resolved, parameters, here);
      },
    }));
  };
}

const calledBySuper = (target: object, name: string): PerfError =>
  misplaced(
    decoratedPlace(target, name),
    'an override calls it through `super`, and workers find methods by their names. Give its work a method of another name.',
  );
