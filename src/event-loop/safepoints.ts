import { putOn } from '../core/stand-in.js';
import { SAFEPOINT_NAME } from './frame.js';

/** Inputs below this cannot block for long. */
const MIN_LENGTH = 65_536;

/** V8 serves a waiting look at the back edge of a loop; here it is served inside the function that made the native call. */
function perfSafepoint(turns: number): number {
  let sum = 0;
  for (let i = 0; i < turns; i++) sum += i;
  return sum;
}

/** What is wrapped, on what. Parameters by name: a copy of the arguments would cost each reply more than all else here. */
const targets: [owner: object, name: string, wrap: (original: never) => object][] = [
  [
    JSON,
    'parse',
    (original: typeof JSON.parse) =>
      function parse(text: string, reviver?: Parameters<typeof JSON.parse>[1]): unknown {
        const result: unknown = original(text, reviver);
        if (typeof text === 'string' && text.length > MIN_LENGTH) perfSafepoint(2);
        return result;
      },
  ],
  [
    JSON,
    'stringify',
    (original: (value: unknown, replacer: unknown, space: unknown) => string | undefined) =>
      function stringify(value: unknown, replacer: unknown, space: unknown): string | undefined {
        const result = original(value, replacer, space);
        if (result !== undefined && result.length > MIN_LENGTH) perfSafepoint(2);
        return result;
      },
  ],
  [
    globalThis,
    'structuredClone',
    (original: (...given: unknown[]) => unknown) =>
      // There is no cheap way to know the size of what was cloned; the loop costs a few nanoseconds.
      function structuredClone(...given: unknown[]): unknown {
        const result = original(...given);
        perfSafepoint(2);
        return result;
      },
  ],
];

/** Wraps them, for each application that asks. Returns the way back. */
export function installSafepoints(): () => void {
  // A minifier has renamed it; stacks show the property.
  Object.defineProperty(perfSafepoint, 'name', { value: SAFEPOINT_NAME });
  const restores = targets.map(([owner, name, wrap]) => {
    const original = Reflect.get(owner, name) as { readonly length: number };
    const wrapper = wrap(original as never) as typeof original;
    // A function whose `length` was defined anew is kept as a table.
    if (wrapper.length !== original.length)
      Object.defineProperty(wrapper, 'length', { value: original.length, configurable: true });
    return putOn(owner, name, wrapper);
  });
  return () => {
    for (const restore of restores) restore?.();
  };
}
