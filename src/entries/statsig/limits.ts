import { createHash } from 'node:crypto';
import type { Unit } from '../../core/record.js';
import type { StatsigMetadata, StatsigUserFields } from './client.js';

/** Statsig cuts longer strings (docs, "Custom events"); its Node SDK sends them whole and only warns. Characters. */
export const MAX_STRING = 64;
/** Statsig cuts larger metadata and user objects. Characters of keys and values. */
export const MAX_OBJECT = 4096;

const HASH = 8;
/** Room for what a rollup adds later: count, sum, sum of squares and `upstreamMs`. */
const RESERVED = 128;

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
  const customIDs: Record<string, string> = {};
  let size = userID.length + 'userIDcustomIDs'.length;
  for (const [key, value] of Object.entries(unit.customIds)) {
    const cut = value.slice(0, MAX_STRING);
    size += key.length + cut.length;
    if (size > MAX_OBJECT) break;
    customIDs[key] = cut;
  }
  return { userID, customIDs };
}

/** `own` always; of `extra` (variants) what still fits. A gate that is named like one of our keys gives way. */
export function buildMetadata(own: StatsigMetadata, extra: Readonly<Record<string, string>> | null): StatsigMetadata {
  if (extra === null) return own;
  const metadata: StatsigMetadata = { ...own };
  let size = RESERVED;
  for (const key of Object.keys(own)) size += key.length + String(own[key]).length;
  for (const [gate, variant] of Object.entries(extra)) {
    const key = label(gate);
    const value = label(variant);
    size += key.length + value.length;
    if (size > MAX_OBJECT) break;
    if (!Object.hasOwn(own, key)) metadata[key] = value;
  }
  return metadata;
}
