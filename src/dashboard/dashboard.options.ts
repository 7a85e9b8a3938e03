import { authorizeOption } from '../core/guarded.js';
import { boolean, feature, number, optional, string, type Resolved } from '../core/option.js';
import type { PerfRequest } from '../core/perf-request.js';

/** A live page of what the application knows of itself. Read only. */
export interface DashboardOptions {
  /**
   * Where the page is. No guard, global prefix or API document applies to it.
   * @default '/perf'
   */
  path?: string;
  /**
   * Who may look, instead of the token; others are answered with 403. Asked at every request of the page, so it must be quick.
   * @default whoever has the token, which is new in every process and told once by its log
   */
  authorize?(this: void, request: PerfRequest): boolean | Promise<boolean>;
  /**
   * How long a browser that came with the token may look before it needs the token again; milliseconds. The token itself is
   * good for the life of the process.
   * @default 43_200_000 (12 h)
   */
  tokenTtlMs?: number;
  /**
   * Hashes stand for user ids, with a salt of this process.
   * @default false
   */
  redactUsers?: boolean;
}

/** The `dashboard` row of the option table: off unless it is asked for. */
export const dashboardOption = optional(
  feature({
    path: string({
      default: '/perf',
      what: 'a path such as `/perf`: begins with `/`, does not end with it, letters, digits and `.`, `_`, `~`, `-` between',
      test: (path) => /^(\/[\w.~-]+)+$/.test(path),
    }),
    authorize: optional(authorizeOption),
    tokenTtlMs: number({ default: 12 * 3_600_000, unit: 'a number of milliseconds' }),
    redactUsers: boolean({ default: false }),
  }),
);

export type ResolvedDashboard = NonNullable<Resolved<typeof dashboardOption>>;
