/**
 * Waits for `work` for at most `deadlineMs`. Resolves with whether it settled in time; rejects as `work` does.
 * A late rejection is swallowed on purpose: its owner was told that the deadline has passed.
 */
export async function within(deadlineMs: number, work: () => Promise<unknown>): Promise<boolean> {
  const working = work();
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), deadlineMs);
  });
  try {
    return await Promise.race([working.then(() => true), late]);
  } finally {
    clearTimeout(timer);
    working.catch(() => {});
  }
}
