// What every benchmark understands on its command line, and how it reads further flags of its own.
import { execFileSync } from 'node:child_process';
import { parseArgs } from 'node:util';

/** Defaults of a published run; a quick look while developing is `--rounds 6 --generations 1`. */
const COMMON = {
  rounds: { type: 'string', default: '60' },
  generations: { type: 'string', default: '6' },
  burst: { type: 'string', default: '4000' },
  warmup: { type: 'string', default: '20000' },
  connections: { type: 'string', default: '50' },
  only: { type: 'string' },
  node: { type: 'string', default: process.execPath },
  'node-flags': { type: 'string', default: '' },
  write: { type: 'boolean', default: true },
};

/**
 * Reads the common flags, and the benchmark's `own` ones (as `parseArgs` describes options).
 *
 * - `--rounds` bursts of each variant in all, over `--generations` sets of fresh processes
 * - `--burst` requests in a burst; `--warmup` requests before the first; `--connections` keep-alive connections
 * - `--only a,b` these variants, beside base and control
 * - `--node` path of the Node binary that runs the servers; `--node-flags` flags for it, separated by spaces
 * - `--no-write` prints, and leaves bench/results alone
 */
export function readFlags(own = {}) {
  const { values } = parseArgs({ options: { ...COMMON, ...own }, allowNegative: true });
  const count = (name) => {
    const number = Number(values[name]);
    if (!Number.isInteger(number) || number < 1) {
      throw new Error(`--${name} must be a whole number above 0, got \`${String(values[name])}\`.`);
    }
    return number;
  };
  return {
    ...values,
    rounds: count('rounds'),
    generations: count('generations'),
    burst: count('burst'),
    warmup: count('warmup'),
    connections: count('connections'),
    only: values.only?.split(',') ?? null,
    nodeFlags: values['node-flags'].split(' ').filter((flag) => flag !== ''),
  };
}

/** Major version of a Node binary, for the name of a result. */
export function nodeMajorOf(node) {
  return Number(/^v(\d+)/.exec(execFileSync(node, ['--version'], { encoding: 'utf8' }))[1]);
}
