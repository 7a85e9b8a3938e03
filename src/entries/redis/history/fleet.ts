import type { Redis } from 'ioredis';
import { asOwnCalls } from '../../../core/own-calls.js';
import type { Verdict } from '../../../core/verdict.js';
import type { Fleet, FleetVerdicts } from '../../../history/fleet.js';
import { decodeRow, encodeRow, type HistoryRow } from '../../../history/rows/row.js';
import { DAY_MS, MINUTE_MS } from '../../../history/rows/tiers.js';
import type { PodMinute } from '../../../ports/history.js';
import type { RedisBuckets } from './buckets.js';
import { KEEP, LEASE, LEAVE } from './scripts.js';

/** A leader that has not renewed its lease for so long leads no more. */
const LEASE_MS = 2.5 * MINUTE_MS;
const VERDICTS_MS = 35 * DAY_MS;
/** A pod that has published nothing for so long is gone. */
const LIVING_MS = 2.5 * MINUTE_MS;
const WINDOWS_MS = 15 * MINUTE_MS;
const MAX_PODS = 5_000;
const MAX_TEXT = 20_000;

/** The pods' talk in Redis: all of it in one slot. */
export class RedisFleet implements Fleet {
  constructor(
    private readonly client: Redis,
    private readonly prefix: string,
    private readonly who: string,
    private readonly buckets: RedisBuckets,
  ) {}

  async lead(): Promise<boolean> {
    return (await asOwnCalls(() => this.client.eval(LEASE, 1, this.key('leader'), this.who, LEASE_MS))) === 1;
  }

  /** A lease that is not given back ends by itself. */
  async leave(): Promise<void> {
    if (this.client.status !== 'ready') return;
    await asOwnCalls(() => this.client.eval(LEAVE, 1, this.key('leader'), this.who)).catch(() => {});
  }

  async verdicts(): Promise<FleetVerdicts | null> {
    const text = await asOwnCalls(() => this.client.get(this.key('verdicts')));
    return text === null ? null : verdictsFrom(text);
  }

  async keepVerdicts(verdicts: FleetVerdicts): Promise<boolean> {
    const keys = [this.key('leader'), this.key('verdicts')];
    const text = JSON.stringify(verdicts);
    return (await asOwnCalls(() => this.client.eval(KEEP, 2, ...keys, this.who, text, VERDICTS_MS))) === 1;
  }

  async publish(minute: PodMinute, windows: readonly HistoryRow[]): Promise<void> {
    const key = this.key('pods');
    const told: Promise<unknown>[] = asOwnCalls(() => [
      this.client.hset(key, this.who, JSON.stringify(minute)),
      this.client.pexpire(key, DAY_MS),
      ...windows.flatMap((row) => {
        const ofWindow = this.key(`pods:${row.at}`);
        return [this.client.hset(ofWindow, this.who, encodeRow(row)), this.client.pexpire(ofWindow, WINDOWS_MS)];
      }),
    ]);
    await Promise.all(told);
  }

  async pods(): Promise<readonly PodMinute[]> {
    const stored = await asOwnCalls(() => this.client.hgetall(this.key('pods')));
    return Object.values(stored).slice(0, MAX_PODS).flatMap(minuteFrom).filter(isLiving);
  }

  async windows(at: number): Promise<readonly HistoryRow[]> {
    const stored = await asOwnCalls(() => this.client.hgetallBuffer(this.key(`pods:${at}`)));
    const rows = Object.values(stored).slice(0, MAX_PODS).map(decodeRow);
    return rows.filter((row): row is HistoryRow => row !== null && row.at === at);
  }

  async tidy(nowMs: number): Promise<void> {
    const key = this.key('pods');
    const stored = await asOwnCalls(() => this.client.hgetall(key));
    const gone = Object.entries(stored).filter(([, text]) => !minuteFrom(text).some(isLiving));
    if (gone.length > 0) await asOwnCalls(() => this.client.hdel(key, ...gone.map(([who]) => who)));
    await this.buckets.pack(nowMs);
  }

  private key(name: string): string {
    return `${this.prefix}:{fleet}:${name}`;
  }
}

const isLiving = ({ at }: PodMinute): boolean => Math.abs(Date.now() - at) < LIVING_MS;

/** Any writer of this Redis may have stored it: each field is checked. */
function minuteFrom(text: string): PodMinute[] {
  const given = parsed(text) as Record<keyof PodMinute, unknown> | null;
  if (given === null) return [];
  const words = (value: unknown): string => (typeof value === 'string' ? value.slice(0, 200) : '');
  const number = (value: unknown): number => (typeof value === 'number' && value >= 0 ? value : 0);
  const { pod, instance, release, at, requests, errors, p95Ms, loopBusy, throttled, memoryBytes } = given;
  const texts = { pod: words(pod), instance: words(instance), release: words(release) };
  const counts = { at: number(at), requests: number(requests), errors: number(errors), p95Ms: number(p95Ms) };
  const shares = { loopBusy: number(loopBusy), throttled: number(throttled), memoryBytes: number(memoryBytes) };
  return [{ ...texts, ...counts, ...shares }];
}

function parsed(text: string): object | null {
  try {
    const given: unknown = JSON.parse(text);
    return typeof given === 'object' ? given : null;
  } catch {
    // Another writer has stored it.
    return null;
  }
}

function verdictsFrom(text: string): FleetVerdicts | null {
  const given: Partial<FleetVerdicts> | null = parsed(text);
  if (given === null || typeof given.judgedUntil !== 'number' || !Array.isArray(given.verdicts)) return null;
  return { judgedUntil: given.judgedUntil, verdicts: given.verdicts.filter(isVerdict).slice(0, 200) };
}

function isVerdict(given: unknown): given is Verdict {
  if (typeof given !== 'object' || given === null) return false;
  const { id, kind, state, since, who, text, routes, because, change, ci } = given as Partial<
    Record<keyof Verdict, unknown>
  >;
  return (
    typeof id === 'string' &&
    (kind === 'worse' || kind === 'better') &&
    (state === 'active' || state === 'resolved') &&
    typeof since === 'number' &&
    Math.abs(since) < 8.64e15 &&
    (who === null || who === undefined || typeof who === 'string') &&
    typeof text === 'string' &&
    text.length <= MAX_TEXT &&
    typeof change === 'number' &&
    Array.isArray(ci) &&
    Array.isArray(because) &&
    Array.isArray(routes) &&
    routes.every((route) => typeof route === 'string')
  );
}
