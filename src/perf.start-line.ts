import type { FEATURES, ResolvedOptions } from './perf.options.js';

const NAMES: Readonly<Record<(typeof FEATURES)[number]['name'], string>> = {
  latency: 'latency',
  eventLoop: 'event loop',
  upstream: 'upstream calls',
  users: 'users',
  resources: 'resources',
  compression: 'compression',
  defer: 'deferred work',
  experiments: 'experiments',
};

/** What is on, and where to look: the first line of a log. */
export function startLine(
  options: ResolvedOptions,
  { sinks, paths, release }: { sinks: readonly string[]; paths: readonly string[]; release: string | null },
): string {
  const on = (Object.keys(NAMES) as (keyof typeof NAMES)[]).filter((feature) => options[feature] !== null);
  const places = [...paths.map((path) => `GET ${path}`), '`PerfService.snapshot()`'];
  return [
    on.length === 0 ? 'Nothing is on' : `On: ${on.map((feature) => NAMES[feature]).join(', ')}`,
    sinks.length === 0 ? 'No sink: records go nowhere' : `Records go to: ${sinks.join(', ')}`,
    `Look at ${places.join(', ')}`,
    release === null ? '' : `Release ${release}`,
  ]
    .filter((part) => part !== '')
    .join('. ');
}
