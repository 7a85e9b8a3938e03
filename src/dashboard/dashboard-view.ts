import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { toEpochMs } from '../core/clock.js';
import { displayJson } from '../core/printable.js';
import { userRedactor } from '../ports/users.js';
import type { PerfApplication } from '../request/application.js';
import { readFleet } from './fleet-view.js';
import { NO_PAST, readPast } from './past.js';
import { PodView, type DashboardSources, type Sample } from './pod-view.js';
import type { RecentRecords } from './recent-records.js';
import { Refreshed } from './refreshed.js';
import { takeWithin } from './route-rows.js';
import type { DashboardData, Past, Scope } from './view.js';

/** Bytes of sections, pods and routes; with what is around them, an answer has at most 256 KB. */
const MAX_BYTES = 230_000;
/** The whole, and routes that viewers have opened. */
const MAX_KNOWN_PASTS = 16;

/** A page's question. */
interface Question {
  /** `pod`: this one, also where a history is shared. */
  readonly scope: string | null;
  /** The route that is open: its row's id, or its name. */
  readonly route: string | null;
}

/** Makes the page's figures when a viewer polls, and only then. */
export class DashboardView {
  private readonly redact = userRedactor(randomBytes(16).toString('hex'));
  private readonly pasts = new Map<string, Refreshed<Past>>();
  private readonly pod: PodView;
  /** Null where no history is shared; so is its value while the store is away. */
  private readonly fleet: Refreshed<Sample | null> | null;

  constructor(
    private readonly host: PerfApplication,
    private readonly sources: DashboardSources,
    records: RecentRecords,
    private readonly assets: string,
    private readonly redactUsers: boolean,
  ) {
    const { history } = sources;
    this.pod = new PodView(host, sources, records, this.nameUser, (route) => this.readPast('pod', route));
    const load = (): Promise<Sample | null> =>
      readFleet(history!, this.nameUser, (route) => this.readPast('fleet', route));
    this.fleet = history?.shared === true ? new Refreshed<Sample | null>(host, 'the fleet', null, load) : null;
  }

  async read({ scope, route }: Question): Promise<DashboardData> {
    const fleet = scope === 'pod' ? null : ((await this.fleet?.read(true)) ?? null);
    const { shown, rows, describe } = fleet ?? (await this.pod.sample());
    const { release } = this.host;
    const startedAt = Math.round(toEpochMs(0));
    const { sections, pods } = shown;
    const routes = takeWithin(rows, MAX_BYTES - Buffer.byteLength(displayJson({ sections, pods })));
    return {
      scope: fleet === null ? 'pod' : 'fleet',
      isShared: this.fleet !== null,
      assets: this.assets,
      process: { pod: hostname(), pid: process.pid, release, node: process.version, startedAt },
      ...shown,
      routes,
      detail: route === null ? null : await describe(route),
    };
  }

  /** Reads the last hours of one route, or of all. */
  readPast(scope: Scope, route: string | null): Promise<Past> {
    const key = `${scope} ${route ?? ''}`;
    const load = (): Promise<Past> => readPast(this.sources.history, scope, route);
    const past = this.pasts.get(key) ?? new Refreshed(this.host, 'the history', NO_PAST, load);
    // The one that was read last is the last to go.
    this.pasts.delete(key);
    this.pasts.set(key, past);
    if (this.pasts.size > MAX_KNOWN_PASTS) this.pasts.delete(this.pasts.keys().next().value!);
    return past.read();
  }

  /** With `users.redact` an id is a hash already, the one that the log has. */
  private readonly nameUser = (unit: string): string =>
    this.redactUsers && (this.sources.users?.redact ?? null) === null ? this.redact(unit) : unit;
}
