import { list, number, object, optional, value, type Resolved } from '../core/option.js';
import type { PerfRequest } from '../core/perf-request.js';
import { bodyBytes, bytes, folderPath, headerName, parameterName } from '../core/shared-options.js';

/** The options of `record()`. Nothing is recorded before `perf.recording.start()`. */
export interface RecordOptions {
  /** The folder for files, made when it is missing; relative to the working directory at boot. On a read-only root, a volume. */
  directory: string;
  /**
   * Requests a second on average, at most, beside those of `perRoute`. Above it, whole sessions are left out.
   * @default 20
   */
  requestsPerSecond?: number;
  /**
   * A floor: of each route so many are kept, whatever session they are of, so that rare routes survive.
   * @default 200
   */
  perRoute?: number;
  /**
   * Bytes of the lines before compression, at which the recording ends; the file is smaller.
   * @default 67_108_864
   */
  maxBytes?: number;
  /**
   * Bodies of requests, JSON and forms, are written up to this size (at most 1,000,000), without the fields whose names are secret;
   * bytes. People's names and addresses are then in the file.
   * @default 0: no body is written
   */
  maxBodyBytes?: number;
  /**
   * Returns the session of a request. Requests of a session belong together, in their order; the file contains a hash of it.
   * A request without a session is kept or left out alone.
   * @default the user that `unit` returns, `request.user?.id`
   */
  sessions?(this: void, request: PerfRequest): string | number | null | undefined;
  /**
   * Further headers that are recorded. Those with secrets are redacted in any case.
   * @default []
   */
  allowHeaders?: readonly string[];
  /**
   * Parameters of the query and of the route's path whose values are recorded whatever they are; of others only numbers, `true`,
   * `false`, dates and times, and in a path ids such as UUIDs. A value in the form of a secret is redacted in any case.
   * @default []
   */
  allowQuery?: readonly string[];
}

export const recordOption = object({
  directory: folderPath,
  requestsPerSecond: number({ default: 20, unit: 'a number of requests a second' }),
  perRoute: number({ default: 200, unit: 'a number of requests', min: 0, integer: true }),
  maxBytes: bytes({ default: 64 * 1024 * 1024 }),
  maxBodyBytes: bodyBytes,
  sessions: optional(
    value<NonNullable<RecordOptions['sessions']>>('a function of the request', (given) => typeof given === 'function'),
  ),
  allowHeaders: list(headerName, { default: [], what: 'a list of header names' }),
  allowQuery: list(parameterName, { default: [], what: 'a list of query parameters' }),
});

export type ResolvedRecordOptions = Resolved<typeof recordOption>;
