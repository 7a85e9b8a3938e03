import { Compressor } from '../../../../src/compression/codec.js';
import { ContentCache } from '../../../../src/compression/content-cache.js';
import type { FieldValue } from '../../../../src/compression/rules/policy.js';
import type { CallerSign, SharedFlight } from '../../../../src/compression/shared-response/shared-flight.js';
import {
  SharedRoute,
  type Admission,
  type SharedResponseOptions,
} from '../../../../src/compression/shared-response/shared-route.js';

const compressor = new Compressor({ zstd: null, br: null, gzip: null }, 1);

export function answer(headers: Record<string, FieldValue> = {}, status = 200) {
  const head: Record<string, FieldValue> = { 'content-type': 'application/json', ...headers };
  return { method: 'GET', status, header: (name: string) => head[name], headers: () => head };
}

interface Asking {
  request?: unknown;
  before?: Record<string, FieldValue>;
  host?: string;
  sign?: CallerSign | null;
  gone?: boolean;
}

/** A route with a clock of its own. */
export function route({
  maxBytes = 1_000_000,
  ...options
}: Partial<SharedResponseOptions> & { maxBytes?: number } = {}) {
  const clock = { nowMs: 1_000 };
  const reasons: string[] = [];
  /** Of callers that got answers of their own. */
  const signs: string[] = [];
  const cache = new ContentCache(maxBytes);
  const shared = new SharedRoute(
    { ttlMs: 100, ...options },
    {
      cache,
      nowMs: () => clock.nowMs,
      units: { isForSomebody: () => false },
      notShared: (reason) => reasons.push(reason),
      ownAnswerGiven: (sign) => signs.push(sign),
    },
  );
  const admit = async (
    url = '/feed',
    { request = {}, before = {}, host = 'a.test', sign = null, gone = false }: Asking = {},
  ): Promise<Admission> =>
    shared.admit({
      urls: [url],
      hosts: [host],
      request,
      headers: () => before,
      sign: () => sign,
      gone: () => gone,
    });
  const land = async (admission: Admission, body: string, view = answer()): Promise<boolean> => {
    const { flight } = admission as { flight: SharedFlight };
    const isKept = flight.keep(view, body) !== null;
    await flight.publish(compressor);
    return isKept;
  };
  const slots = (): number => (shared as unknown as { slots: Map<string, unknown> }).slots.size;
  return { clock, reasons, signs, cache, admit, land, slots };
}

export const bodyOf = (admission: Admission): unknown =>
  admission.kind === 'kept' ? admission.kept.entry.source : admission.kind;
