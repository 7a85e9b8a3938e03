let depth = 0;

/** Runs `work`, whose calls are this library's: no upstream of the application. Calls must begin before `work` returns. */
export function asOwnCalls<T>(work: () => T): T {
  depth += 1;
  try {
    return work();
  } finally {
    depth -= 1;
  }
}

/** Whether the call that begins now is this library's. */
export const isOwnCall = (): boolean => depth > 0;
