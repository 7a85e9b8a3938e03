// Reads the flags that every benchmark shares, and further ones of its own.
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { installLocked } from '../../scripts/install.mjs';
import { refuseUncommittedChanges } from './report.mjs';

/** Defaults of a published run; a quick look while developing is `--rounds 6 --generations 1`. */
const COMMON = {
  rounds: { type: 'string', default: '60' },
  generations: { type: 'string', default: '6' },
  burst: { type: 'string', default: '4000' },
  warmup: { type: 'string', default: '20000' },
  connections: { type: 'string', default: '50' },
  'rate-ms': { type: 'string', default: '1500' },
  'rate-phases': { type: 'string', default: '3' },
  'max-control-error': { type: 'string', default: '0.05' },
  only: { type: 'string' },
  node: { type: 'string', default: process.execPath },
  write: { type: 'boolean', default: true },
};

/**
 * Reads the common flags, and the benchmark's `own` ones (as `parseArgs` describes options).
 *
 * - `--rounds` bursts of each variant in all, over `--generations` sets of fresh processes
 * - `--burst` requests in a burst; `--warmup` requests before the first; `--connections` keep-alive connections
 * - `--rate-phases` a generation of `--rate-ms` of requests at one rate, for p50 and p99
 * - `--max-control-error` share by which a twin may differ
 * - `--only a,b` variants whose name holds `a` or `b`, beside base and control; nothing is written
 * - `--node` runs the servers: path of a Node binary, or `24` for the one that bench/node24 locks
 * - `--no-write` prints, and leaves bench/results alone: without it, uncommitted changes are refused
 */
export function readFlags(own = {}) {
  const { values } = parseArgs({ options: { ...COMMON, ...own }, allowNegative: true });
  const count = (name) => {
    const number = Number(values[name]);
    if (Number.isInteger(number) && number >= 1) return number;
    throw new Error(`--${name} must be a whole number above 0, got \`${String(values[name])}\`.`);
  };
  const maxControlError = Number(values['max-control-error']);
  if (!(maxControlError > 0)) throw new Error('--max-control-error must be a number above 0, as 0.05.');
  const only = values.only?.split(',') ?? null;
  const write = values.write && only === null;
  if (write) refuseUncommittedChanges();
  return {
    ...values,
    node: nodeBinary(values.node),
    rounds: count('rounds'),
    generations: count('generations'),
    burst: count('burst'),
    warmup: count('warmup'),
    connections: count('connections'),
    rateMs: count('rate-ms'),
    ratePhases: count('rate-phases'),
    maxControlError,
    only,
    write,
  };
}

/** Version of a Node binary: of the one that servers run on, not of the benchmark's own. */
export const readNodeVersion = (node) => execFileSync(node, ['--version'], { encoding: 'utf8' }).trim();

/** Major version of a Node binary, for the name of a result. */
export function readNodeMajor(node) {
  return Number(/^v(\d+)/.exec(readNodeVersion(node))[1]);
}

function nodeBinary(asked) {
  const folder = `bench/node${asked}`;
  if (!existsSync(folder)) return asked;
  installLocked(folder);
  return `${folder}/node_modules/node/bin/node`;
}
