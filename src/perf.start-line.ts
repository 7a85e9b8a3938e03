import type { PerfApplication } from './request/application.js';
import type { PerfExtension } from './request/extension.js';
import { FEATURES, KEPT_ON, type ResolvedOptions } from './perf.options.js';

/** Formats the first line of the log: the features and extensions that are on, the sinks, and the paths. */
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
  const on = [...features.map(({ title }) => title), ...extensions.map(({ name }) => name)];
  const sinks = recorder.sinkNames;
  const off = options.namedOff.filter((name) => !KEPT_ON.has(name));
  const places = [...paths.map((path) => `GET ${path}`), '`PerfService.snapshot()`'];
  return [
    on.length === 0 ? 'Nothing is on' : `On: ${on.join(', ')}`,
    ...(off.length === 0 ? [] : [`Off by NESTJS_PERF_OFF: ${off.join(', ')}`]),
    sinks.length === 0 ? 'No sink: no record leaves the process' : `Records go to: ${sinks.join(', ')}`,
    `Look at ${places.join(', ')}`,
    ...(release === null ? [] : [`Release ${release}`]),
  ].join('. ');
}
