import { createHmac, randomBytes } from 'node:crypto';
import type { Resolved } from '../core/option.js';
import { TIME_SPLIT } from '../core/request-time.js';
import type { RequestState } from '../core/request-state.js';
import { routeName } from '../core/route.js';
import type { PerfSnapshot } from '../core/snapshot.js';
import { REDACT_USER, USERS } from '../core/users.js';
import type { Feature, FeatureDefinition, FeatureHost } from '../http/feature.js';
import type { RequestObserver } from '../http/lifecycle.js';
import { HeavyUsers } from './heavy-users.js';
import { usersOption } from './users.options.js';

type Options = NonNullable<Resolved<typeof usersOption>>;

/** Of a snapshot; `PerfService.users()` lists them all. */
const IN_SNAPSHOT = 20;
/** Hashes that are kept. */
const MAX_NAMES = 10_000;

/** Who uses which route most. */
class UsersFeature implements Feature, RequestObserver {
  private readonly heavy: HeavyUsers;
  private readonly salt: string | null;
  private readonly names = new Map<string, string>();

  constructor(
    { top, redact }: Options,
    private readonly host: FeatureHost,
  ) {
    this.heavy = new HeavyUsers(top, host.nowMs);
    this.salt = redact === true ? randomBytes(16).toString('hex') : redact === false ? null : redact;
    if (this.salt !== null) REDACT_USER.set(host.requests, (userId) => this.nameOf(userId));
    USERS.set(host.requests, (by, route, lastMs) => this.heavy.list(by, route, lastMs));
  }

  install(): void {
    this.host.requests.observe(this);
  }

  ended(state: RequestState): void {
    const { route } = state;
    const unit = state.unit ?? this.host.units.of(state);
    // Where nobody is known, experiments put the request's id.
    if (route === null || route.handler?.skipped === true || unit === null || unit.userId === state.id) return;
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

  private nameOf(userId: string): string {
    const plain = userId.replaceAll('\n', ' ').slice(0, 200);
    if (this.salt === null) return plain;
    const known = this.names.get(plain);
    if (known !== undefined) return known;
    const name = createHmac('sha256', this.salt).update(plain).digest('hex').slice(0, 16);
    if (this.names.size >= MAX_NAMES) this.names.clear();
    this.names.set(plain, name);
    return name;
  }
}

export const usersFeature: FeatureDefinition<'users', Options> = {
  name: 'users',
  title: 'users',
  observes: 'requests',
  option: usersOption,
  create: (options, host) => (options === null ? {} : new UsersFeature(options, host)),
};
