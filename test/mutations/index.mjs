import { eventLoop } from './event-loop.mjs';
import { cgroups } from './cgroups.mjs';
import { negotiation } from './negotiation.mjs';
import { statistics } from './statistics.mjs';

/**
 * One way to break a rule: in `file`, `find` (which stands there exactly once) becomes `replace`; then one of `tests` must
 * fail. `only`, a pattern of test names, keeps long suites short.
 * @typedef {{ name: string, file: string, find: string, replace: string, tests: string[], only?: string }} Mutation
 */

/** @type {(Mutation & { table: string })[]} */
export const mutations = Object.entries({ 'event-loop': eventLoop, cgroups, negotiation, statistics }).flatMap(
  ([table, rows]) => rows.map((row) => ({ table, ...row })),
);
