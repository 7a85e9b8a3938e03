import { parseArgs } from 'node:util';
import { durationMs, parseHeaders } from './quantity.js';
import { UsageError } from './usage.js';

const one = (fallback?: string) => ({ type: 'string', ...(fallback !== undefined && { default: fallback }) }) as const;
const several = { type: 'string', multiple: true, default: [] as string[] } as const;

/** Options of every command. */
const COMMON = {
  allow: several,
  header: several,
  'target-is-mine': several,
  timeout: one('10s'),
  json: one(),
} as const;

const COMMANDS = {
  ramp: {
    ...COMMON,
    from: one(),
    start: one('10'),
    steps: one('1,2,3,4'),
    hold: one('60s'),
    rest: one('20s'),
    gate: one('p95<1s errors<1%'),
    'snapshot-header': several,
    'snapshot-path': one('/perf/snapshot'),
  },
  replay: { ...COMMON, target: one(), speed: one('1'), gate: one() },
  diff: { ...COMMON, primary: one(), secondary: one(), candidate: one(), 'requests-per-route': one('200') },
} as const;

export type Command = keyof typeof COMMANDS;
export type Given = Readonly<Record<string, string | string[] | undefined>>;

/**
 * `operand` stands beside the options: a URL or a file.
 * @throws UsageError
 */
export function readArguments([command = '', ...rest]: readonly string[]) {
  if (!Object.hasOwn(COMMANDS, command))
    throw new UsageError(`"${command}" is no command. There are: ${Object.keys(COMMANDS).join(', ')}. More: --help`);
  const known = command as Command;
  try {
    const { values, positionals } = parseArgs({ args: [...rest], options: COMMANDS[known], allowPositionals: true });
    const [operand, ...others] = positionals;
    if (operand === undefined || others.length > 0)
      throw new UsageError(
        `${command} takes one ${known === 'ramp' ? 'URL' : 'recording'}, got ${positionals.length}. More: --help`,
      );
    return { command: known, operand, options: values as Given };
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`${(error as Error).message} More: --help`, { cause: error });
  }
}

/** Options of every command, checked. */
export const readCommon = (options: Given) => ({
  allow: readList(options, 'allow'),
  mine: readList(options, 'target-is-mine'),
  headers: parseHeaders(readList(options, 'header'), '--header'),
  timeoutMs: Math.max(1, durationMs(readText(options, 'timeout'), '--timeout')),
});

export const readList = (options: Given, name: string): string[] => options[name] as string[];
export const readText = (options: Given, name: string): string => options[name] as string;

/** The outcome of a command. */
export interface CommandResult {
  readonly exitCode: number;
  /** For `--json`. */
  readonly figures: object;
}
