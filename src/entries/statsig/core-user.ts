import { optionalPeer } from '../../core/optional-peer.js';
import type { StatsigUserFields } from './client.js';

export type StatsigUserClass = new (fields: StatsigUserFields) => object;

/**
 * The class of users in `@statsig/statsig-node-core`: of a plain object its client prints an error and drops the event.
 * @throws PERF_ERR_MISSING_PEER
 */
export async function coreUserClass(neededBy: string): Promise<StatsigUserClass> {
  const name = '@statsig/statsig-node-core';
  return (await optionalPeer(name, neededBy, () => import('@statsig/statsig-node-core'))).StatsigUser;
}
