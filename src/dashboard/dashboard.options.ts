import { counted } from '../core/figures.js';
import { authorizeOption } from '../core/guarded.js';
import { boolean, feature, optional, string, type Option, type Resolved } from '../core/option.js';
import { duration } from '../core/shared-options.js';
import { PerfError } from '../core/perf.error.js';
import type { PerfRequest } from '../core/perf-request.js';

/** A live page of what the application knows of itself. Read only. */
export interface DashboardOptions {
  /**
   * The page's path. No guard, global prefix or API document applies to it.
   * @default '/perf'
   */
  path?: string;
  /**
   * Decides who may read the page, instead of the token; others are answered with 403. Called at every request of the page, so it must be quick.
   * @default whoever has the token
   */
  authorize?(this: void, request: PerfRequest): boolean | Promise<boolean>;
  /**
   * The token that lets in, at least 16 characters; also the environment variable `PERF_TOKEN`. All pods of an application have
   * the same, so that each answers for the others. It is never logged.
   * @default one is made in every process, and logged once
   */
  token?: string;
  /**
   * How long a browser that came with the token has access before it needs the token again; milliseconds. The token itself is
   * good for as long as it is set, or for the life of the process that made it.
   * @default 43_200_000 (12 h)
   */
  tokenTtlMs?: number;
  /**
   * Hashes replace user ids, with a salt of this process.
   * @default false
   */
  redactUsers?: boolean;
}

const LEAST_LENGTH = 16;

/** An error has its length, never the token itself. */
const token: Option<string | null> = {
  expected: `a text of at least ${LEAST_LENGTH} characters`,
  read(given, path) {
    if (given === undefined) return null;
    if (typeof given === 'string' && given.length >= LEAST_LENGTH) return given;
    const got = typeof given === 'string' ? counted(given.length, 'character') : `a ${typeof given}`;
    throw new PerfError('PERF_ERR_OPTION', `\`${path}\` must be ${this.expected}, got ${got}.`);
  },
};

/**
 * The token of the environment; an empty one is none.
 * @throws PERF_ERR_OPTION
 */
export const tokenOfEnvironment = (env: NodeJS.ProcessEnv): string | null =>
  token.read(env['PERF_TOKEN'] === '' ? undefined : env['PERF_TOKEN'], 'PERF_TOKEN');

/** The `dashboard` row of the option table: off by default. */
export const dashboardOption = optional(
  feature({
    path: string({
      default: '/perf',
      what: 'a path such as `/perf`: begins with `/`, does not end with it, letters, digits and `.`, `_`, `~`, `-` between',
      test: (path) => /^(\/[\w.~-]+)+$/.test(path),
    }),
    authorize: optional(authorizeOption),
    token,
    tokenTtlMs: duration({ default: 12 * 3_600_000 }),
    redactUsers: boolean({ default: false }),
  }),
);

export type ResolvedDashboard = NonNullable<Resolved<typeof dashboardOption>>;
