import { list, number, object, optional, string, value, type Option, type Resolved } from '../core/option.js';
import { bytes, folderPath } from '../core/shared-options.js';
import type { PerfRequest } from '../core/perf-request.js';

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
   * Bodies of requests, JSON and forms, are written up to this size, without the fields whose names are secret; bytes. People's names
   * and addresses are then in the file.
   * @default 0: no body is written
   */
  maxBodyBytes?: number;
  /**
   * Returns the session of a request. Requests of a session belong together, in their order; the file contains a hash of it.
   * A request without a session is kept or left out alone.
   * @default whom `unit` tells, `request.user?.id`
   */
  sessions?(this: void, request: PerfRequest): string | number | null | undefined;
  /**
   * Further headers that are recorded. Those with secrets are redacted whatever stands here.
   * @default []
   */
  allowHeaders?: readonly string[];
  /**
   * Names of headers, parameters and fields that are secret beyond the built-in ones and those of `eventLoop.replay.denyNames`.
   * @default []
   */
  denyNames?: readonly string[];
}

const text = (what: string): Option<string> => string({ what, test: (given) => given.trim() !== '' });
export const recordOption = object({
  directory: folderPath,
  requestsPerSecond: number({ default: 20, unit: 'a number of requests a second' }),
  perRoute: number({ default: 200, unit: 'a number of requests', min: 0, integer: true }),
  maxBytes: bytes({ default: 64 * 1024 * 1024 }),
  maxBodyBytes: bytes({ default: 0, min: 0 }),
  sessions: optional(
    value<NonNullable<RecordOptions['sessions']>>('a function of the request', (given) => typeof given === 'function'),
  ),
  allowHeaders: list(text('the name of a header'), { default: [], what: 'a list of header names' }),
  denyNames: list(text('a name'), { default: [], what: 'a list of names' }),
});

export type ResolvedRecordOptions = Resolved<typeof recordOption>;
