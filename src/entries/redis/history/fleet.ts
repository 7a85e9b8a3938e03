import type { Redis } from 'ioredis';
import { asOwnCalls } from '../../../core/own-calls.js';
import type { Verdict } from '../../../core/verdict.js';
import type { Fleet, FleetVerdicts } from '../../../history/history-store.js';
import { decodeRow, encodeRow, type HistoryRow } from '../../../history/rows/row.js';
import { DAY_MS, MINUTE_MS } from '../../../history/rows/tiers.js';
import type { PodMinute } from '../../../ports/history.js';

/** A leader that has not renewed its lease for so long leads no more. */
const LEASE_MS = 2.5 * MINUTE_MS;
const VERDICTS_MS = 35 * DAY_MS;
/** A pod that has published nothing for so many minutes is gone. */
const LIVING_MINUTES = 3;
const WINDOWS_MS = 15 * MINUTE_MS;
const MAX_PODS = 5_000;
const MAX_TEXT = 20_000;
/** The greatest value of a Date. */
const MAX_TIME = 8.64e15;

/**
 * Takes or renews a lease, unless it is for no time. KEYS: the lease, the verdicts. ARGV: who, for how long. Returns whether it is
 * ours, and the verdicts.
 */
const LEAD = `
local held = redis.call('GET', KEYS[1])
if (not held or held == ARGV[1]) and ARGV[2] ~= '0' then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  held = ARGV[1]
end
return { held == ARGV[1] and 1 or 0, redis.call('GET', KEYS[2]) }
`;

/** Stores the verdicts while the lease is ours. KEYS: the lease, the verdicts. ARGV: who, the verdicts, for how long. */
const KEEP = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3])
return 1
`;

/** The exchange among pods in Redis: all of it in one slot. */
export class RedisFleet implements Fleet {
  private readonly leader: string;
  private readonly verdicts: string;

  constructor(
    private readonly client: Redis,
    private readonly prefix: string,
    private readonly who: string,
  ) {
    this.leader = this.key('leader');
    this.verdicts = this.key('verdicts');
  }

  async lead(canRead: boolean): Promise<{ leads: boolean; kept: FleetVerdicts | null }> {
    const { client, leader, verdicts, who } = this;
    const answer = await asOwnCalls(() => client.eval(LEAD, 2, leader, verdicts, who, canRead ? LEASE_MS : 0));
    const [leads, text] = answer as [number, string | null];
    return { leads: leads === 1, kept: text === null ? null : readVerdicts(text) };
  }

  async keepVerdicts(given: FleetVerdicts): Promise<boolean> {
    const { client, leader, verdicts, who } = this;
    const text = JSON.stringify(given);
    return (await asOwnCalls(() => client.eval(KEEP, 2, leader, verdicts, who, text, VERDICTS_MS))) === 1;
  }

  async publish(minute: PodMinute, windows: readonly HistoryRow[]): Promise<void> {
    const put = (key: string, value: string | Buffer, keepMs: number): Promise<unknown>[] => [
      this.client.hset(key, this.who, value),
      this.client.pexpire(key, keepMs),
    ];
    await asOwnCalls(() =>
      Promise.all([
        ...put(this.minuteKey(0), JSON.stringify(minute), LIVING_MINUTES * MINUTE_MS),
        ...windows.flatMap((row) => put(this.key(`pods:${row.at}`), encodeRow(row), WINDOWS_MS)),
      ]),
    );
  }

  async pods(): Promise<readonly PodMinute[]> {
    // The latest minute of each pod counts. Clocks differ: one may be ahead.
    const ago = Array.from({ length: LIVING_MINUTES + 1 }, (_, index) => LIVING_MINUTES - 1 - index);
    const stored = await asOwnCalls(() =>
      Promise.all(ago.map((minutes) => this.client.hgetall(this.minuteKey(minutes)))),
    );
    const latest: Record<string, string> = Object.assign({}, ...stored);
    const isLiving = ({ at }: PodMinute): boolean => Math.abs(Date.now() - at) < LIVING_MINUTES * MINUTE_MS;
    return Object.values(latest).slice(0, MAX_PODS).flatMap(readMinute).filter(isLiving);
  }

  async windows(at: number): Promise<readonly HistoryRow[]> {
    const stored = await asOwnCalls(() => this.client.hgetallBuffer(this.key(`pods:${at}`)));
    const rows = Object.values(stored).slice(0, MAX_PODS).map(decodeRow);
    return rows.filter((row): row is HistoryRow => row !== null && row.at === at);
  }

  private minuteKey(minutesAgo: number): string {
    return this.key(`minute:${Math.floor(Date.now() / MINUTE_MS) - minutesAgo}`);
  }

  private key(name: string): string {
    return `${this.prefix}:{fleet}:${name}`;
  }
}

// Any writer of this Redis may have stored what is read here: each field is checked.

const TEXTS = ['pod', 'instance', 'release'] as const;
const NUMBERS = ['at', 'requests', 'errors', 'p95Ms', 'loopBusy', 'throttled', 'memoryBytes'] as const;

function readMinute(text: string): PodMinute[] {
  const given = readJson(text) as Record<keyof PodMinute, unknown> | null;
  if (given === null) return [];
  const readText = (value: unknown): string => (typeof value === 'string' ? value.slice(0, 200) : '');
  const readNumber = (value: unknown): number => (typeof value === 'number' && value >= 0 ? value : 0);
  const texts = TEXTS.map((key) => [key, readText(given[key])] as const);
  const numbers = NUMBERS.map((key) => [key, readNumber(given[key])] as const);
  return [Object.fromEntries<string | number>([...texts, ...numbers]) as unknown as PodMinute];
}

function readJson(text: string): object | null {
  try {
    const given: unknown = JSON.parse(text);
    return typeof given === 'object' ? given : null;
  } catch {
    return null;
  }
}

function readVerdicts(text: string): FleetVerdicts | null {
  const given: Partial<FleetVerdicts> | null = readJson(text);
  if (given === null || typeof given.judgedUntil !== 'number' || !Array.isArray(given.verdicts)) return null;
  return { judgedUntil: given.judgedUntil, verdicts: given.verdicts.filter(isVerdict).slice(0, 200) };
}

function isVerdict(given: unknown): given is Verdict {
  const { id, kind, state, since, who, text, routes, because, change, ci } = Object(given) as Partial<
    Record<keyof Verdict, unknown>
  >;
  return (
    [id, text, who ?? ''].every((one) => typeof one === 'string' && one.length <= MAX_TEXT) &&
    (kind === 'worse' || kind === 'better') &&
    (state === 'active' || state === 'resolved') &&
    [since, change].every((one) => typeof one === 'number' && Math.abs(one) < MAX_TIME) &&
    isList(ci, (one) => typeof one === 'number') &&
    isList(routes, (one) => typeof one === 'string') &&
    isList(because, (one) => typeof Object(one).name === 'string' && typeof Object(one).share === 'number')
  );
}

const isList = (given: unknown, isRight: (one: unknown) => boolean): boolean =>
  Array.isArray(given) && given.every(isRight);
