import { createHmac } from 'node:crypto';
import type { RequestRecord, Unit } from '../core/record.js';
import type { UserUse } from '../core/snapshot.js';

/** The heaviest users of the last hour, or of a shorter time, first. Not provided with `users: false`. */
export abstract class UserList {
  abstract list(by: 'totalMs' | 'count', route?: string, lastMs?: number): UserUse[];
  /** The name of a user in records, logs and pages; null: the id itself, without `users.redact`. */
  abstract readonly redact: ((userId: string) => string) | null;
}

/** The unredacted unit that experiments pass to their gates, by the record whose unit is redacted. */
export const UNIT_OF_EXPERIMENTS = new WeakMap<RequestRecord, Unit>();

const MAX_NAMES = 10_000;
/** An id for a label: one line, 200 characters at most. */
export const userName = (userId: string): string => userId.replaceAll('\n', ' ').slice(0, 200);

/** Puts the same 16 hexadecimal digits in the place of the same id, as long as the salt is the same. */
export function userRedactor(salt: string): (userId: string) => string {
  const names = new Map<string, string>();
  return (userId) => {
    const plain = userName(userId);
    const known = names.get(plain);
    if (known !== undefined) return known;
    const name = createHmac('sha256', salt).update(plain).digest('hex').slice(0, 16);
    if (names.size >= MAX_NAMES) names.clear();
    names.set(plain, name);
    return name;
  };
}
