import type { Redis } from 'ioredis';
import { getOrAdd } from '../../../core/get-or-add.js';
import { asOwnCalls } from '../../../core/own-calls.js';
import type { HistoryStoreHost } from '../../../history/history-store.js';
import { readPackedSums } from '../../../history/rows/encoded-window.js';
import { pack } from '../../../history/rows/message-pack.js';
import { VERSION, type HistoryRow } from '../../../history/rows/row.js';
import { findRule, HOUR_MS, startBucket, TIERS, type Tier, type TierRule } from '../../../history/rows/tiers.js';
import type { TimeRange } from '../../../ports/history.js';

/** Keys of one round trip. */
const KEYS_AT_ONCE = 64;
/** For how long Redis knows which part was added last: one whose answer was lost comes again within that time, else it counts twice. */
const PARTS_KNOWN_MS = 2 * HOUR_MS;
/** Releases of a bucket whose counts are kept apart: the first ones. */
const MAX_APART = 4;
/** More routes of one bucket are not ours. */
const MAX_ROUTES = 2_000;

/**
 * Adds what a pod has counted to a bucket, once. KEYS: the bucket, and which part of each pod was added last. ARGV: the pod, the
 * part, when the bucket expires, for how long parts are known (milliseconds), the release; then routes and their sums.
 */
const ADD = `
local last = redis.call('HGET', KEYS[2], ARGV[1])
if last and tonumber(last) >= tonumber(ARGV[2]) then
  redis.call('PEXPIRE', KEYS[2], ARGV[4])
  return 0
end
local function add(sums, more)
  for key, value in pairs(more) do
    local known = sums[key]
    if type(value) == 'table' then
      if type(known) ~= 'table' then sums[key] = {} end
      add(sums[key], value)
    elseif type(known) ~= 'number' then sums[key] = value
    elseif string.sub(key, 1, 1) == '^' then sums[key] = math.max(known, value)
    else sums[key] = known + value end
  end
end
local apart = ARGV[5]
if apart ~= '' then
  local served = cjson.encode({ apart })
  local number = redis.call('HGET', KEYS[1], served)
  if not number then
    number = redis.call('HINCRBY', KEYS[1], 'releases', 1)
    redis.call('HSET', KEYS[1], served, number)
  end
  if (tonumber(number) or math.huge) > ${MAX_APART} then apart = '' end
end
for i = 6, #ARGV, 2 do
  local field, packed = cjson.encode({ apart, ARGV[i] }), ARGV[i + 1]
  local isRight, sums, counts = pcall(cmsgpack.unpack, redis.call('HGET', KEYS[1], field) or '')
  if isRight and type(sums) == 'table' and type(counts) == 'table' then
    local moreSums, moreCounts = cmsgpack.unpack(packed)
    add(sums, moreSums)
    add(counts, moreCounts)
    packed = cmsgpack.pack(sums, counts)
  end
  redis.call('HSET', KEYS[1], field, packed)
end
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
redis.call('PEXPIREAT', KEYS[1], ARGV[3])
redis.call('PEXPIRE', KEYS[2], ARGV[4])
return 1
`;

/** The counts of all pods: one hash a tier and bucket, each in a slot of its own, with a field for each route. */
export class RedisBuckets {
  /** The number of the last part that was added. */
  private added = -1;

  constructor(
    private readonly client: Redis,
    private readonly prefix: string,
    private readonly host: HistoryStoreHost,
    private readonly who: string,
  ) {}

  /** One part after the other: a later one of a pod proves that the earlier ones were added. */
  async add(parts: readonly HistoryRow[]): Promise<void> {
    for (const part of parts) {
      const number = part.part ?? 0;
      if (number <= this.added) continue;
      await this.addPart(part, number);
      this.added = number;
    }
  }

  async *read(tier: Tier, { from, to }: TimeRange): AsyncGenerator<HistoryRow> {
    const { stepMs } = findRule(tier);
    const now = Date.now();
    // Other pods' clocks may be ahead; nobody's is by an hour.
    const newest = Math.min(to, now + HOUR_MS);
    const first = Math.max(from, now - this.host.keptMs(tier) - stepMs);
    const buckets: number[] = [];
    for (let at = Math.ceil(first / stepMs) * stepMs; at < newest; at += stepMs) buckets.push(at);
    while (buckets.length > 0) {
      const some = buckets.splice(0, KEYS_AT_ONCE);
      const found = await asOwnCalls(() =>
        Promise.all(some.map((at) => this.client.hgetallBuffer(this.keyAt(tier, at)))),
      );
      for (const [index, stored] of found.entries()) {
        for (const row of readRows(stored)) yield { tier, at: some[index]!, pod: '', instance: '', ...row };
      }
    }
  }

  private async addPart(part: HistoryRow, number: number): Promise<void> {
    const sums = [...readPackedSums(part.data)].flatMap(([name, bytes]) => [name, Buffer.from(bytes)]);
    const adding = ({ tier, stepMs }: TierRule): Promise<unknown> => {
      const at = startBucket(part.at, stepMs);
      const key = this.keyAt(tier, at);
      const expireAt = Math.round(at + this.host.keptMs(tier) + stepMs);
      const head = [this.who, number, expireAt, PARTS_KNOWN_MS, part.release];
      return this.client.eval(ADD, 2, key, `${key}:parts`, ...head, ...sums);
    };
    await asOwnCalls(() => Promise.all(TIERS.map(adding)));
  }

  /** The bucket's key; what is in braces decides on the slot in a cluster. Another version's counts have other keys. */
  private keyAt(tier: Tier, at: number): string {
    return `${this.prefix}:${VERSION}:{${tier}:${at}}`;
  }
}

/** Rows of a bucket: one for each release, without counts where they are among those of others, whose release is not named. */
function readRows(stored: Readonly<Record<string, Buffer>>): Pick<HistoryRow, 'release' | 'data'>[] {
  const byRelease = new Map<string, Map<string, Uint8Array>>();
  for (const [field, sums] of Object.entries(stored)) {
    const [release, name] = readField(field);
    if (release === undefined) continue;
    const routes = getOrAdd(byRelease, release, () => new Map<string, Uint8Array>());
    if (name !== undefined && routes.size < MAX_ROUTES) routes.set(name, sums);
  }
  return [...byRelease].map(([release, routes]) => ({ release, data: pack(routes) }));
}

/** Any writer of this Redis may have stored it: nothing where it is no field of ours. */
function readField(field: string): readonly [release?: string, name?: string] {
  try {
    const names: unknown = JSON.parse(field);
    return Array.isArray(names) && names.every((name) => typeof name === 'string') ? (names as [string, string?]) : [];
  } catch {
    return [];
  }
}
