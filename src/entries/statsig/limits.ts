import { createHash } from 'node:crypto';
import type { Unit } from '../../core/record.js';
import type { StatsigMetadata, StatsigUserFields } from './client.js';

/** Statsig cuts longer strings (docs, "Custom events"); its Node SDK sends them whole and only warns. Characters. */
export const MAX_STRING = 64;
const HASH = 8;

/** At most 64 characters; two long texts that begin alike stay apart. */
export function label(text: string): string {
  if (text.length <= MAX_STRING) return text;
  const hash = createHash('sha256').update(text).digest('hex').slice(0, HASH);
  return `${text.slice(0, MAX_STRING - HASH - 1)}~${hash}`;
}

/** At most 64 characters of the end: of a source location the line is worth more than the folder. */
export const labelEnd = (text: string): string =>
  text.length <= MAX_STRING ? text : `…${text.slice(text.length - MAX_STRING + 1)}`;

/** The user of an event. Ids are cut where the service cuts them, so that they still join with its exposures. */
export function limitUser(unit: Unit): StatsigUserFields {
  const userID = unit.userId.slice(0, MAX_STRING);
  if (unit.customIds === undefined) return { userID };
  const ids = Object.entries(unit.customIds).map(([key, value]) => [key, value.slice(0, MAX_STRING)] as const);
  return { userID, customIDs: Object.fromEntries(ids) };
}

/** Adds a key for each variant. A gate that is named like one of our keys gives way. */
export function buildMetadata(
  own: StatsigMetadata,
  variants: Readonly<Record<string, string>> | null,
): StatsigMetadata {
  if (variants === null) return own;
  const added = Object.entries(variants).map(([gate, variant]) => [label(gate), variant] as const);
  return { ...Object.fromEntries(added), ...own };
}
