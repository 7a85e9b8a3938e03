import { routeName } from '../core/route.js';
import type { Finding } from '../core/snapshot.js';
import type { Target } from './target.js';

/** Fewer requests say too little. */
const MIN_REQUESTS = 5;
/** So many calls of one URL or command in a request could mostly be one. */
const MIN_ALIKE = 5;

/** Routes that ask one upstream for the same again and again. */
export function repeatedCalls(targets: readonly Target[]): Finding[] {
  const findings: Finding[] = [];
  for (const { name, routes } of targets) {
    for (const [route, { requests, calls, alike }] of routes) {
      if (requests < MIN_REQUESTS || alike / requests < MIN_ALIKE) continue;
      const times = Math.round(calls / requests);
      const asks = routeName(route);
      findings.push({ kind: 'repeated-calls', route: asks, text: `${asks} calls ${name} ${times} times a request` });
    }
  }
  return findings;
}
