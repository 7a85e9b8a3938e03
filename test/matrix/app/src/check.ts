/** One line of JSON a check, for scripts/matrix.mjs. A check that throws fails, and the next one still runs. */
export async function check(name: string, work: () => Promise<unknown>): Promise<void> {
  const startedMs = performance.now();
  let failed: string | null = null;
  try {
    await work();
  } catch (error) {
    failed = error instanceof Error ? (error.stack ?? error.message) : String(error);
    process.exitCode = 1;
  }
  console.log(JSON.stringify({ check: name, ms: Math.round(performance.now() - startedMs), failed }));
}

/** Resolves when `condition` holds; fails after the deadline with what it was waiting for. */
export async function until(what: string, condition: () => boolean | Promise<boolean>, deadlineMs = 10_000) {
  const startedMs = performance.now();
  while (!(await condition())) {
    if (performance.now() - startedMs > deadlineMs) throw new Error(`waited ${deadlineMs} ms for: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
