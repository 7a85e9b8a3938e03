/** Waits for all, and returns why some have failed. An application may have replaced `Promise`, and `allSettled()` with it. */
export async function settleAll(works: readonly PromiseLike<unknown>[]): Promise<unknown[]> {
  const failures: unknown[] = [];
  await Promise.all(works.map((work) => work.then(undefined, (error: unknown) => void failures.push(error))));
  return failures;
}
