import { inOffloadThread, putOffloadOptions } from '../core/offload-thread.js';
import { needExtension } from '../request/extension.js';
import { misplaced } from './offload.errors.js';
import { offloadMethodOption, type OffloadMethodOptions } from './offload.options.js';

/** The line that a boot without the extension asks for. */
export const ADD_OFFLOAD = "extensions: [offload({ module: new URL('./offload.module.js', import.meta.url) })]";

type OffloadDecorator = <T extends (...parameters: never[]) => Promise<unknown>>(
  target: object,
  name: string | symbol,
  descriptor: TypedPropertyDescriptor<T>,
) => void;

/**
 * The method runs in a worker thread, in the same class of an application of the worker's own: what it asks of the database
 * arrives there, and only the result travels. Arguments and result are copied, as `structuredClone()` does.
 * Stands on an async method of a provider that is no controller and not request-scoped. In the worker it runs directly.
 * @throws PERF_ERR_OPTION, PERF_ERR_DECORATOR where it stands; calls reject with PERF_ERR_OFFLOAD_FULL, PERF_ERR_OFFLOAD_TIMEOUT,
 * PERF_ERR_SERIALIZE, PERF_ERR_OFFLOAD, and with what the method throws
 */
export function Offload(options: OffloadMethodOptions = {}): OffloadDecorator {
  const resolved = offloadMethodOption.read(options, '@Offload()');
  return (target, name, { value }) => {
    const owner = typeof target === 'function' ? target.name : target.constructor.name;
    const label = `${owner}.${String(name)}`;
    if (typeof target === 'function') throw misplaced(label, 'a static method belongs to no provider.');
    if (typeof name === 'symbol') throw misplaced(label, 'give the method a name that is no symbol.');
    if (typeof value !== 'function')
      throw misplaced(label, 'it must be a method. Move it to one, beneath what leaves an accessor there.');
    putOffloadOptions(target, name, resolved);
    if (inOffloadThread()) return;
    needExtension({ name: 'offload', decorator: '@Offload()', add: ADD_OFFLOAD }, target, name);
  };
}
