import { createHash, randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import type { Level2, Level2Answer, Level2Listener, Level2Write } from '../../cached-data/level2.js';
import { describeReason } from '../../core/reason.js';
import { within } from '../../core/within.js';
import { isCluster, reconnectInMs } from './connection.js';

/** Shortest life of an invalidation, milliseconds: it outlives loads in flight. */
const MIN_KEEP_MS = 60_000;
const PING_MS = 10_000;
const SUBSCRIBE_MS = 1_000;
const CLOSE_MS = 500;
/** In a Cluster each node has all messages. */
const ONE_CONNECTION = { lazyConnect: true, retryStrategy: null };
/** Other keys are hashed: long ones, and texts that are no Unicode. */
const READABLE_KEY = /^[\x20-\x7e]{0,200}$/;

// A value's key has the start of its load, by the clock of Redis, and the text; an invalidated key has the time of the invalidation alone.
// A load that began before the time of its key, or of its method's key, is never written. Keys of one method are in one slot.

const NOW = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)`;

/** KEYS: value, method. Returns the time, and where there is a value its age and text; milliseconds. */
const READ = `${NOW}
local held = redis.call('MGET', KEYS[1], KEYS[2])
local loadedAt = held[1] and tonumber(string.match(held[1], '^(%d+):'))
if not loadedAt or (held[2] and tonumber(held[2]) >= loadedAt) then return { now } end
return { now, now - loadedAt, string.sub(held[1], string.find(held[1], ':') + 1) }`;

/** KEYS: value, method. ARGV: when its load began, text, milliseconds to keep it. */
const WRITE = `
for _, key in ipairs(KEYS) do
  local newest = string.match(redis.call('GETRANGE', key, 0, 20), '^%d+')
  if newest and tonumber(newest) >= tonumber(ARGV[1]) then return 0 end
end
redis.call('SET', KEYS[1], ARGV[1] .. ':' .. ARGV[2], 'PX', ARGV[3])
return 1`;

/** KEYS: value or method. ARGV: milliseconds to keep it, channel, message. Without memory it still deletes the value and publishes. */
const INVALIDATE = `${NOW}
local kept = redis.pcall('SET', KEYS[1], string.format('%.0f', now), 'PX', ARGV[1])
if kept.err then redis.call('DEL', KEYS[1]) end
redis.call('PUBLISH', ARGV[2], ARGV[3])
return kept`;

/** ioredis sends the digest of a script, and the script where Redis does not know it. */
interface Scripts {
  perfRead(value: string, method: string): Promise<[number, number?, string?]>;
  perfWrite(value: string, method: string, loadedAt: string, text: string, keepMs: string): Promise<unknown>;
  perfInvalidate(name: string, keepMs: string, channel: string, message: string): Promise<unknown>;
}

/** Cached values in a Redis that all pods share. */
export class RedisLevel2 implements Level2 {
  private readonly self = randomUUID();
  private readonly scripts: Scripts;
  private readonly channel: string;
  /** Methods of which an invalidation has failed, and for how long it must be known: all of theirs is invalidated when Redis is back. */
  private readonly unsent = new Map<string, number>();
  private isReady = false;
  private isOpen = false;
  private isClosed = false;
  private subscriber: Redis | null = null;
  private ping: NodeJS.Timeout | undefined;

  constructor(
    private readonly commands: Redis,
    private readonly prefix: string,
    private readonly deadlineMs: number,
    private readonly listener: Level2Listener,
  ) {
    this.channel = `${prefix}:invalidated`;
    commands.defineCommand('perfRead', { numberOfKeys: 2, lua: READ });
    commands.defineCommand('perfWrite', { numberOfKeys: 2, lua: WRITE });
    commands.defineCommand('perfInvalidate', { numberOfKeys: 1, lua: INVALIDATE });
    this.scripts = commands as unknown as Scripts;
  }

  /** Waits a moment for Redis, so that nothing is missed from the first load on. A Redis that is away is no error. */
  async open(): Promise<void> {
    const { commands } = this;
    this.reportErrors(commands);
    commands.on('ready', () => {
      this.isReady = true;
      this.sendUnsent();
    });
    commands.on('close', () => (this.isReady = false));
    await within(SUBSCRIBE_MS, async () => {
      await commands.connect().catch(() => {});
      await this.listen();
    });
    // A gap before the first load misses nothing.
    this.isOpen = true;
    this.ping = setInterval(() => this.beat(), PING_MS).unref();
  }

  async read(method: string, key: string): Promise<Level2Answer | null> {
    if (!this.isReady) return null;
    try {
      let answer: [number, number?, string?] | undefined;
      const reading = async (): Promise<void> => {
        answer = await this.scripts.perfRead(this.makeKey(method, key), this.makeKey(method));
      };
      await within(this.deadlineMs, reading);
      if (answer === undefined) return this.wasLate();
      // An invalidation that has failed meanwhile counts too: replies come in order.
      if (this.unsent.has(method)) return null;
      const [atMs, ageMs, text] = answer;
      return { atMs, value: ageMs === undefined || text === undefined ? null : { ageMs, text } };
    } catch (error) {
      this.failed('read', error);
      return null;
    }
  }

  write(method: string, key: string, text: string, { loadedAtMs, keepMs }: Level2Write): void {
    if (!this.isReady) return;
    const [loadedAt, keep] = [Math.floor(loadedAtMs), Math.max(1, Math.floor(keepMs))].map(String) as [string, string];
    this.scripts
      .perfWrite(this.makeKey(method, key), this.makeKey(method), loadedAt, text, keep)
      .catch((error: unknown) => this.failed('write', error));
  }

  invalidate(method: string, key: string | null, givenMs: number): void {
    const keepMs = Math.max(MIN_KEEP_MS, Math.ceil(givenMs));
    if (this.isReady) this.send(method, key, keepMs);
    else this.unsent.set(method, keepMs);
  }

  async close(): Promise<void> {
    this.isClosed = true;
    clearInterval(this.ping);
    if (this.isReady) await within(CLOSE_MS, () => this.commands.quit()).catch(() => {});
    this.isReady = false;
    this.commands.disconnect();
    this.subscriber?.disconnect();
  }

  /** A connection that is half open owes the answer, and is made anew. Invalidations that failed for want of memory are repeated. */
  private beat(): void {
    this.subscriber?.ping().catch(() => {});
    if (this.isReady) this.sendUnsent();
  }

  private sendUnsent(): void {
    const unsent = [...this.unsent];
    this.unsent.clear();
    for (const [method, keepMs] of unsent) this.send(method, null, keepMs);
  }

  /** Subscribes by a connection of its own, which another one follows when it ends. Resolves when the first attempt has ended. */
  private async listen(failures = 0): Promise<void> {
    if (this.isClosed) return;
    const { commands } = this;
    const server = isCluster(commands) ? pickOne(commands.nodes()) : commands;
    const listenLater = (): void => {
      failures += 1;
      setTimeout(() => void this.listen(failures), reconnectInMs(failures)).unref();
    };
    if (server === null) return listenLater();
    const subscriber = (this.subscriber = server.duplicate(ONE_CONNECTION));
    this.reportErrors(subscriber);
    subscriber.on('message', (_channel: string, message: string) => this.receive(message));
    subscriber.on('end', listenLater);
    try {
      await subscriber.connect();
      await subscriber.subscribe(this.channel);
      failures = 0;
      if (this.isOpen) this.listener.missed();
    } catch (error) {
      if (subscriber.status === 'ready') this.failed('subscribe', error);
      subscriber.disconnect();
    }
  }

  private reportErrors(client: Redis): void {
    client.on('error', (error: Error) => this.listener.report('redisCache', `redisCache(): ${describeReason(error)}.`));
  }

  private receive(message: string): void {
    try {
      const [from, method, key] = JSON.parse(message) as [string, string, string | null];
      if (from !== this.self) this.listener.invalidated(method, key);
    } catch {
      this.listener.report(
        'redisCache channel',
        `redisCache(): \`${this.channel}\` carries what is no message of ours.`,
      );
    }
  }

  private send(method: string, key: string | null, keepMs: number): void {
    const message = JSON.stringify([this.self, method, key]);
    this.scripts
      .perfInvalidate(this.makeKey(method, key), String(keepMs), this.channel, message)
      .catch((error: unknown) => {
        this.failed('invalidate', error);
        this.unsent.set(method, keepMs);
      });
  }

  private wasLate(): null {
    this.listener.report(
      'redisCache is late',
      `redisCache(): Redis did not answer within ${this.deadlineMs} ms; values are loaded from their source instead.`,
    );
    return null;
  }

  private failed(what: string, error: unknown): void {
    this.listener.report(`redisCache ${what}`, `redisCache() could not ${what}: ${describeReason(error)}`);
  }

  /** The Redis key of a value; without `key` that of its method. */
  private makeKey(method: string, key: string | null = null): string {
    const group = `${this.prefix}:{${method}}`;
    if (key === null) return group;
    // The first letter separates texts and hashes: a caller may choose the key, and no key is taken for another's hash.
    if (READABLE_KEY.test(key)) return `${group}:=${key}`;
    return `${group}:#${createHash('sha256').update(key, 'utf16le').digest('base64url')}`;
  }
}

const pickOne = <T>(all: readonly T[]): T | null => all[Math.floor(Math.random() * all.length)] ?? null;
