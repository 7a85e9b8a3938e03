import { randomBytes } from 'node:crypto';
import type { Resolved } from '../core/option.js';
import type { RequestState } from '../request/request-state.js';
import { isMeasured } from '../request/routes.js';
import type { PerfSnapshot, UserUse } from '../core/snapshot.js';
import { UserList, userName, userRedactor } from '../ports/users.js';
import { PerfApplication } from '../request/application.js';
import { provideFeature, providePort, type Feature, type FeatureDefinition } from '../request/feature.js';
import { HeavyUsers } from './heavy-users.js';
import { usersOption } from './users.options.js';

type Options = NonNullable<Resolved<typeof usersOption>>;

/** In a snapshot; `PerfService.users()` lists them all. */
const IN_SNAPSHOT = 20;

export class UsersFeature implements Feature, UserList {
  readonly redact: ((userId: string) => string) | null;
  private readonly heavy: HeavyUsers;

  constructor(
    { top, redact }: Options,
    private readonly application: PerfApplication,
  ) {
    this.heavy = new HeavyUsers(top, application.nowMs);
    const salt = redact === true ? randomBytes(16).toString('hex') : redact === false ? null : redact;
    this.redact = salt === null ? null : userRedactor(salt);
  }

  ended(state: RequestState): void {
    const { route } = state;
    if (route === null || !isMeasured(route)) return;
    const unit = state.unit ?? this.application.units.of(state);
    // The unit of experiments is the request's id where no user is known.
    if (unit === null || unit.userId === state.id) return;
    this.heavy.add({
      unit: (this.redact ?? userName)(unit.userId),
      route: route.name,
      durationMs: state.endedMs - state.startedMs,
      upstreamMs: state.timing?.time.upstreamMs ?? 0,
    });
  }

  list(by: 'totalMs' | 'count', route?: string, lastMs?: number): UserUse[] {
    return this.heavy.list(by, route, lastMs);
  }

  snapshot(): Pick<PerfSnapshot, 'users'> {
    return { users: this.list('totalMs').slice(0, IN_SNAPSHOT) };
  }
}

export const usersFeature: FeatureDefinition<'users', Options> = {
  name: 'users',
  title: 'users',
  observes: 'requests',
  option: usersOption,
  token: UsersFeature,
  providers: [
    provideFeature('users', UsersFeature, [PerfApplication], (options: Options | null, application: PerfApplication) =>
      options === null ? null : new UsersFeature(options, application),
    ),
    providePort(UserList, UsersFeature),
  ],
};
