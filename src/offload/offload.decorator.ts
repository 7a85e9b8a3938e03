import { inOffloadThread, putOffloadOptions } from '../core/offload-thread.js';
import { wrapMethod } from '../request/decorated-method.js';
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
  const resolved = offloadMethodOption.read(options, '@Offload()');
  return (target, name, descriptor) => {
    const owner = typeof target === 'function' ? target.name : target.constructor.name;
    const label = `${owner}.${String(name)}`;
    if (typeof target === 'function') throw misplaced(label, 'a static method belongs to no provider.');
    if (typeof name === 'symbol') throw misplaced(label, 'give the method a name that is no symbol.');
    if (typeof descriptor.value !== 'function')
      throw misplaced(label, 'it must be a method. Move it to one, beneath what leaves an accessor there.');
    putOffloadOptions(target, name, resolved);
    if (inOffloadThread()) return;
    needExtension({ name: 'offload', decorator: '@Offload()', add: ADD_OFFLOAD }, target, name);
    wrapMethod(descriptor, (method) => ({
      wrapper(this: unknown, ...parameters: unknown[]): unknown {
        const here = (): unknown => method.apply(this, parameters);
        const run = runningInstances.get(this);
        return run === undefined ? here() : run(name, parameters, here);
      },
    }));
  };
}
