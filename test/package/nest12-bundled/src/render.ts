/** Blocks the event loop. */
export function renderRows(ms: number): number {
  const until = performance.now() + ms;
  let rows = 0;
  while (performance.now() < until) rows += 1; // LINE
  return rows;
}
