import { FEATURES, type ResolvedOptions } from './perf.options.js';

/** What is on, and where to look: the first line of a log. */
export function startLine(
  options: ResolvedOptions,
  { sinks, paths, release }: { sinks: readonly string[]; paths: readonly string[]; release: string | null },
): string {
  const on = FEATURES.filter(({ name }) => options[name] !== null).map(({ title }) => title);
  const places = [...paths.map((path) => `GET ${path}`), '`PerfService.snapshot()`'];
  return [
    on.length === 0 ? 'Nothing is on' : `On: ${on.join(', ')}`,
    sinks.length === 0 ? 'No sink: records go nowhere' : `Records go to: ${sinks.join(', ')}`,
    `Look at ${places.join(', ')}`,
    release === null ? '' : `Release ${release}`,
  ]
    .filter((part) => part !== '')
    .join('. ');
}
