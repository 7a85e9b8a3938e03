import { SAFEPOINT_NAME } from './frame.js';

/** Inputs below this cannot block for long. */
const MIN_LENGTH = 65_536;
/** On our own wrappers: how many applications want them, and what they stand for. */
const WRAPS: unique symbol = Symbol.for('nestjs-perf:safepoint') as never;

interface Wrapper {
  [WRAPS]?: { users: number; original: unknown };
}

/** V8 serves a waiting look at the back edge of a loop; here it is served inside the function that made the native call. */
function perfSafepoint(turns: number): number {
  let sum = 0;
  for (let i = 0; i < turns; i++) sum += i;
  return sum;
}

// Parameters by name: a copy of the arguments would cost each reply more than all else here.
const json = JSON as unknown as Record<string, unknown>;
const targets: { owner: Record<string, unknown>; key: string; wrap: (original: never) => unknown }[] = [
  {
    owner: json,
    key: 'parse',
    wrap: (original: typeof JSON.parse) =>
      function parse(text: string, reviver?: Parameters<typeof JSON.parse>[1]): unknown {
        const result: unknown = original(text, reviver);
        if (typeof text === 'string' && text.length > MIN_LENGTH) perfSafepoint(2);
        return result;
      },
  },
  {
    owner: json,
    key: 'stringify',
    wrap: (original: (value: unknown, replacer: unknown, space: unknown) => string | undefined) =>
      function stringify(value: unknown, replacer: unknown, space: unknown): string | undefined {
        const result = original(value, replacer, space);
        if (result !== undefined && result.length > MIN_LENGTH) perfSafepoint(2);
        return result;
      },
  },
  {
    owner: globalThis,
    key: 'structuredClone',
    wrap: (original: (...given: unknown[]) => unknown) =>
      // There is no cheap way to know the size of what was cloned; the loop costs a few nanoseconds.
      function structuredClone(...given: unknown[]): unknown {
        const result = original(...given);
        perfSafepoint(2);
        return result;
      },
  },
];

/** Wraps them once for all applications that ask. Returns the way back; the last one restores the originals. */
export function installSafepoints(): () => void {
  // A minifier has renamed it; stacks show the property.
  Object.defineProperty(perfSafepoint, 'name', { value: SAFEPOINT_NAME });
  for (const { owner, key, wrap } of targets) {
    const present = owner[key] as Wrapper;
    const known = present[WRAPS];
    if (known !== undefined) {
      known.users += 1;
      continue;
    }
    const wrapper = wrap(present as never) as Wrapper;
    wrapper[WRAPS] = { users: 1, original: present };
    const { length } = present as { length: number };
    // A function whose `length` was defined anew is kept as a table.
    if ((wrapper as { length: number }).length !== length) {
      Object.defineProperty(wrapper, 'length', { value: length, configurable: true });
    }
    owner[key] = wrapper;
  }
  let installed = true;
  return () => {
    if (!installed) return;
    installed = false;
    for (const { owner, key } of targets) {
      const known = (owner[key] as Wrapper)[WRAPS];
      if (known === undefined) continue;
      known.users -= 1;
      if (known.users === 0) owner[key] = known.original;
    }
  };
}
