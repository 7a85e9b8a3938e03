/** Whether `work` has settled within `deadlineMs`. Rejects as it does; a late rejection is swallowed. */
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
