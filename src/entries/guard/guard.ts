import { guardExtension } from '../../guard/guard.feature.js';
import type { GuardOptions } from '../../guard/guard.options.js';
import type { PerfExtension } from '../../http/extension.js';
import { cockatielPolicies } from './cockatiel.js';

/**
 * Guards calls to upstreams: deadlines that know when our own loop was blocked, retries within a budget, a breaker, a bound on the
 * calls under way. `PerfModule.forRoot({ extensions: [guard({ upstreams: { github: { deadlineMs: 2_000 } } })] })`. Needs the
 * package `cockatiel`. With `enabled: false` every call passes as it is: no deadline, no retry, no refusal; fallbacks still answer.
 * @throws PERF_ERR_OPTION
 */
export const guard = (options: GuardOptions): PerfExtension => guardExtension(options, cockatielPolicies);
