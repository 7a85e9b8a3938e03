import { PerfError } from './core/perf.error.js';

const VARIABLE = 'NESTJS_PERF_OFF';

/**
 * The features that the environment switches off: `NESTJS_PERF_OFF=compression,upstream`. In any case, with or without spaces.
 * @throws PERF_ERR_OPTION for a name that no feature has
 */
export function featuresOff<Name extends string>(known: readonly Name[], environment = process.env): Name[] {
  const given = (environment[VARIABLE] ?? '').split(',').map((name) => name.trim());
  const found = given.filter((name) => name !== '').map((name) => findFeature(name, known));
  return [...new Set(found)];
}

function findFeature<Name extends string>(name: string, known: readonly Name[]): Name {
  const found = known.find((one) => one.toLowerCase() === name.toLowerCase());
  if (found === undefined) throw unknownFeature(name, known);
  return found;
}

const unknownFeature = (name: string, known: readonly string[]): PerfError =>
  new PerfError(
    'PERF_ERR_OPTION',
    `The environment variable ${VARIABLE} names \`${name.slice(0, 60)}\`, which is no feature. It is a list of these, separated by ` +
      `commas: ${known.join(', ')}.`,
  );
