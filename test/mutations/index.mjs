import { eventLoop } from './event-loop.mjs';
import { cgroups } from './cgroups.mjs';
import { negotiation } from './negotiation.mjs';
import { statistics } from './statistics.mjs';

/**
 * Ways to break a rule: in `file`, `find` (which stands there exactly once) becomes `replace`; then one of `tests` must
 * fail. `only`, a pattern of test names, keeps long suites short. scripts/mutations.mjs applies them.
 */
export const mutations = Object.entries({ 'event-loop': eventLoop, cgroups, negotiation, statistics }).flatMap(
  ([table, rows]) => rows.map((row) => ({ table, ...row })),
);
