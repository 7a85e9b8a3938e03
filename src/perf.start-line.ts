import type { PerfApplication } from './request/application.js';
import type { PerfExtension } from './request/extension.js';
import { FEATURES, KEPT_ON, type ResolvedOptions } from './perf.options.js';

/** Formats the first line of the log: the features that are on, the sinks, and the paths. */
export function startLine(
  { recorder, release, requests }: PerfApplication,
  options: ResolvedOptions,
  extensions: readonly PerfExtension[],
  paths: readonly string[],
): string {
  const hasServer = requests.platform !== null;
  const features = FEATURES.filter(
    ({ name, needsServer = false }) => options[name] !== null && (hasServer || !needsServer),
  );
  const sinks = recorder.sinkNames;
  const off = options.namedOff.filter((name) => !KEPT_ON.has(name));
  const places = [...paths.map((path) => `GET ${path}`), '`PerfService.snapshot()`'];
  return [
    nameParts(
      features.map(({ title }) => title),
      extensions,
    ),
    ...(off.length === 0 ? [] : [`Off by NESTJS_PERF_OFF: ${off.join(', ')}`]),
    sinks.length === 0 ? 'No sink: records go nowhere' : `Records go to: ${sinks.join(', ')}`,
    `Look at ${places.join(', ')}`,
    ...(release === null ? [] : [`Release ${release}`]),
  ].join('. ');
}

/** Names what is on: `'On: latency, users; extensions: cache, resilience'`. */
function nameParts(titles: readonly string[], extensions: readonly PerfExtension[]): string {
  if (extensions.length === 0) return titles.length === 0 ? 'Nothing is on' : `On: ${titles.join(', ')}`;
  const names = extensions.map(({ name }) => name).join(', ');
  return `On: ${titles.length === 0 ? 'no feature' : titles.join(', ')}; extensions: ${names}`;
}
