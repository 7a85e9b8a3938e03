import { randomBytes } from 'node:crypto';
import type { Resolved } from '../core/option.js';
import { TIME_SPLIT } from '../core/request-time.js';
import type { RequestState } from '../core/request-state.js';
import { isMeasured, routeName } from '../core/route.js';
import type { PerfSnapshot } from '../core/snapshot.js';
import { REDACT_USER, userName, userRedactor, USERS } from '../core/users.js';
import type { Feature, FeatureDefinition, FeatureHost } from '../http/feature.js';
import type { RequestObserver } from '../http/lifecycle.js';
import { HeavyUsers } from './heavy-users.js';
import { usersOption } from './users.options.js';

type Options = NonNullable<Resolved<typeof usersOption>>;

/** Of a snapshot; `PerfService.users()` lists them all. */
const IN_SNAPSHOT = 20;

/** Who uses which route most. */
class UsersFeature implements Feature, RequestObserver {
  private readonly heavy: HeavyUsers;
  private readonly nameOf: (userId: string) => string;

  constructor(
    { top, redact }: Options,
    private readonly host: FeatureHost,
  ) {
    this.heavy = new HeavyUsers(top, host.nowMs);
    const salt = redact === true ? randomBytes(16).toString('hex') : redact === false ? null : redact;
    this.nameOf = salt === null ? userName : userRedactor(salt);
    if (salt !== null) REDACT_USER.set(host.requests, this.nameOf);
    USERS.set(host.requests, (by, route, lastMs) => this.heavy.list(by, route, lastMs));
  }

  install(): void {
    this.host.requests.observe(this);
  }

  ended(state: RequestState): void {
    const { route } = state;
    const unit = state.unit ?? this.host.units.of(state);
    // Where nobody is known, experiments put the request's id.
    if (route === null || !isMeasured(route) || unit === null || unit.userId === state.id) return;
    this.heavy.add({
      unit: this.nameOf(unit.userId),
      route: routeName(route),
      durationMs: state.endedMs - state.startedMs,
      upstreamMs: TIME_SPLIT.get(state)?.time.upstreamMs ?? 0,
    });
  }

  snapshot(): Pick<PerfSnapshot, 'users'> {
    return { users: this.heavy.list('totalMs').slice(0, IN_SNAPSHOT) };
  }
}

export const usersFeature: FeatureDefinition<'users', Options> = {
  name: 'users',
  title: 'users',
  observes: 'requests',
  option: usersOption,
  create: (options, host) => (options === null ? {} : new UsersFeature(options, host)),
};
