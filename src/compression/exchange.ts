import type { FieldValue } from './rules/field-value.js';
import type { ResponseHead } from './rules/policy.js';
import type { KeptResponse, SharedFlight } from './shared-response/shared-route.js';

/** One response whose head is not sent yet, the same for both adapters. */
export interface Exchange extends ResponseHead {
  readonly method: string;
  /** The client has gone: work for it alone is wasted. */
  readonly gone: boolean;
  /** Others wait for this response (a flight), or it was kept for others before; null for a response of its own. */
  readonly shared: SharedFlight | KeptResponse | null;
  /** Whether a response without a tag may get one. */
  readonly tags: boolean;
  status: number;
  requestHeader(name: 'accept-encoding' | 'if-none-match' | 'cache-control'): string | undefined;
  set(name: string, value: string | number | readonly string[]): void;
  remove(name: string): void;
  /** All response headers, by lower-case name. */
  headers(): Readonly<Record<string, FieldValue>>;
}
