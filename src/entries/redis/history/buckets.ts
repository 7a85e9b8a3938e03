import type { Redis } from 'ioredis';
import { asOwnCalls } from '../../../core/own-calls.js';
import type { HistoryStoreHost } from '../../../history/history-store.js';
import { VERSION, type HistoryRow } from '../../../history/rows/row.js';
import {
  startBucket,
  DAY_MS,
  HOUR_MS,
  findRule,
  TIERS,
  type Tier,
  type TierRule,
} from '../../../history/rows/tiers.js';
import type { TimeRange } from '../../../ports/history.js';
import { hashRelease, makeFields, hashName, packedField, readRows, type Stored } from './fields.js';
import { ADD, PACK } from './scripts.js';

/** Keys of one round trip. */
const KEYS_AT_ONCE = 64;
/** For how long it is known which part was added last. */
const PARTS_KNOWN_MS = 2 * HOUR_MS;
/** A part that may have been added is given up after this: later, its id is forgotten. */
const GIVEN_UP_MS = HOUR_MS;
/** The hours around its start, in which a release's counts are kept apart; of so many releases at a time. */
const APART_MS = DAY_MS;
const MAX_APART = 3;
/** Pods write once a minute, and clocks differ: a bucket is complete so long after its end. */
const COMPLETE_MS = 3 * 60_000;

/** The counts of all pods: one hash a tier and bucket, each in a slot of its own. */
export class RedisBuckets {
  /** When a part was first sent, where no answer has come. */
  private readonly sentMs = new Map<number, number>();
  /** The id of this pod's release, while its counts are kept apart, and until when. */
  private apart: { readonly release: string; readonly id: string; readonly untilMs: number } | null = null;
  /** Per tier: buckets that begin before it are packed. */
  private readonly packedUntil = new Map<Tier, number>();

  constructor(
    private readonly client: Redis,
    private readonly prefix: string,
    private readonly host: HistoryStoreHost,
    /** This connection's writer. */
    private readonly who: string,
  ) {}

  /** One part after the other: a later one of a pod proves that the earlier ones were added. */
  async add(parts: readonly HistoryRow[]): Promise<void> {
    for (const part of parts) {
      const number = part.part ?? 0;
      const firstMs = this.sentMs.get(number);
      if (firstMs === undefined || Date.now() - firstMs < GIVEN_UP_MS) await this.addPart(part, number);
      this.sentMs.delete(number);
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
        for (const { apart, release, data } of readRows(stored))
          yield { tier, at: some[index]!, pod: '', instance: apart, release, data };
      }
    }
  }

  /** Packs what is complete, the newest first: a bucket of many fields becomes one of few. */
  async pack(nowMs: number): Promise<void> {
    for (const { tier, stepMs, keepMs } of TIERS) {
      const until = startBucket(nowMs - COMPLETE_MS, stepMs);
      // A leader before may have left some: as far back as it may have been away.
      const from = this.packedUntil.get(tier) ?? until - Math.min(keepMs, 12 * stepMs);
      for (let at = until - stepMs; at >= from; at -= stepMs) await this.packOne(tier, at);
      this.packedUntil.set(tier, Math.max(from, until));
    }
  }

  private async packOne(tier: Tier, at: number): Promise<void> {
    const key = this.keyAt(tier, at);
    const stored = (await asOwnCalls(() => this.client.hgetallBuffer(key))) as Stored;
    const fields = Object.keys(stored);
    const plain = fields.filter((field) => /^[^:]*:[^:]*:[^+]/.test(field));
    if (plain.length === 0) return;
    const rows = readRows(stored).filter((row) => fields.some((field) => field.startsWith(`${row.apart}:`)));
    const packed = new Map<string, Uint8Array>();
    for (const { apart, data } of rows) if (!packed.has(packedField(apart))) packed.set(packedField(apart), data);
    // Names of releases stay: they prove which of them served.
    const kept = new Set(fields.filter((field) => field.startsWith('s:')).map((field) => `n:${field.slice(2)}`));
    const names = fields.filter((field) => field.startsWith('n:') && !kept.has(field));
    const args: (string | number | Buffer)[] = [stored['v']?.toString() ?? '0', fields.length, packed.size];
    for (const [field, data] of packed) args.push(field, Buffer.from(data));
    for (const field of [...plain, ...names]) args.push(field, stored[field]!);
    await asOwnCalls(() => this.client.eval(PACK, 1, key, ...args));
  }

  private async addPart(part: HistoryRow, number: number): Promise<void> {
    const apart = await this.apartFor(part.release);
    const { names, greatest, added } = makeFields(part, apart);
    const pairs = [...names, ...greatest, ...added].flat();
    if (this.client.status === 'ready' && !this.sentMs.has(number)) this.sentMs.set(number, Date.now());
    const adding = ({ tier, stepMs }: TierRule): Promise<unknown> => {
      const at = startBucket(part.at, stepMs);
      const key = this.keyAt(tier, at);
      const expireAt = at + this.host.keptMs(tier) + stepMs;
      const head = [this.who, number, Math.round(expireAt), PARTS_KNOWN_MS, names.size, greatest.size];
      return this.client.eval(ADD, 2, key, `${key}:parts`, ...head, ...pairs);
    };
    const results = await asOwnCalls(() => Promise.allSettled(TIERS.map(adding)));
    for (const result of results) if (result.status === 'rejected') throw result.reason;
  }

  /** A release that came after others is kept apart for a day; the first one never is. */
  private async apartFor(release: string): Promise<string> {
    if (release === '') return '';
    if (this.apart?.release !== release) this.apart = await this.register(release);
    return Date.now() < this.apart.untilMs ? this.apart.id : '';
  }

  private async register(release: string): Promise<NonNullable<RedisBuckets['apart']>> {
    const key = `${this.prefix}:{fleet}:releases`;
    const id = hashName(release);
    const now = Date.now();
    const known = await asOwnCalls(async () => {
      const asked = [this.client.hsetnx(key, id, now), this.client.pexpire(key, this.host.keptMs('1h'))];
      const all = this.client.hgetall(key);
      await Promise.all(asked);
      return all;
    });
    const young = Object.entries(known)
      .map(([other, since]) => ({ other, since: Number(since) }))
      .filter(({ since }) => now - since < APART_MS);
    const newest = young.toSorted((a, b) => b.since - a.since).slice(0, MAX_APART);
    const own = newest.find(({ other }) => other === id);
    const isFirst = Object.values(known).every((since) => Number(since) >= (own?.since ?? 0)) || own === undefined;
    return { release, id: hashRelease(release), untilMs: isFirst ? 0 : own.since + APART_MS };
  }

  /** The bucket's key; what is in braces decides on the slot in a cluster. Another version's counts have other keys. */
  private keyAt(tier: Tier, at: number): string {
    return `${this.prefix}:${VERSION}:{${tier}:${at}}`;
  }
}
