import { EventEmitter, errorMonitor } from 'node:events';
import { putOn } from '../../core/stand-in.js';
import { isThenable } from '../../core/thenable.js';
import { hasMethods, untilEnd, type EndCall } from './watched-call.js';

type Callback = (...results: unknown[]) => unknown;
type Query = (...given: unknown[]) => unknown;
/** https://node-postgres.com/apis/client#queryconfig */
interface Config {
  readonly text?: string;
  readonly callback?: Callback;
  /** Of a cursor, a stream or a `Query`. */
  readonly submit?: unknown;
}

/** Queries that a pool passes on to one of its clients: they have been heard of. */
const passedOn = new WeakSet<object>();

type Begin = (what: string) => EndCall;

/** Who hears of the queries of one object, and what takes away what stands on it. */
interface Heard {
  readonly hearers: Set<Begin>;
  readonly takeAway: () => void;
}
const HEARD = new WeakMap<object, Heard>();

/**
 * node-postgres has no event for a query. So `query` becomes a property of this one object, which is gone when nobody hears any
 * more. `begin` is called where the query is made. A pool makes its queries with clients that are heard as well.
 */
export function hearQueries(client: object, begin: Begin, { isPool }: { isPool: boolean }): () => void {
  let heard = HEARD.get(client);
  if (heard === undefined) HEARD.set(client, (heard = standBefore(client, isPool)));
  const { hearers, takeAway } = heard;
  hearers.add(begin);
  return () => {
    hearers.delete(begin);
    if (hearers.size > 0) return;
    // Where somebody has wrapped it since then it stays, and passes everything on.
    takeAway();
    HEARD.delete(client);
  };
}

function standBefore(client: object, isPool: boolean): Heard {
  const hearers = new Set<Begin>();
  const query = (client as { query: Query }).query;
  const heard: Query = function (this: unknown, ...given) {
    const config = configOf(given[0]);
    if (hearers.size === 0 || config === null || passedOn.has(given[0] as object))
      return Reflect.apply(query, this, given);
    const ends = [...hearers].map((begin) => begin(config.text ?? ''));
    const end: EndCall = (failed) => ends.splice(0).forEach((one) => one(failed));
    if (isPool) passedOn.add(config);
    const text = typeof given[0] === 'string' && !isPool ? given[0] : config;
    return run((...rest) => Reflect.apply(query, this, [text, ...rest]), config, given.slice(1), end);
  };
  return { hearers, takeAway: putOn(client, 'query', heard)! };
}

/** A copy of the query, so that the caller's own object is neither marked nor changed; null: none, the client says so itself. */
function configOf(given: unknown): Config | null {
  if (typeof given === 'string') return { text: given };
  if (typeof given !== 'object' || given === null) return null;
  if (isSubmittable(given)) return given;
  // What a query is of some class may be told by getters.
  return Object.getPrototypeOf(given) === Object.prototype ? { ...given } : (Object.create(given) as Config);
}

const isSubmittable = (config: Config): boolean => typeof config.submit === 'function';

/** Makes the query with callbacks that tell of its end; without one its promise does. */
function run(query: Query, config: Config, rest: readonly unknown[], end: EndCall): unknown {
  const heard = (callback: Callback): Callback =>
    function (this: unknown, ...results) {
      end(results[0] !== undefined && results[0] !== null);
      return Reflect.apply(callback, this, results);
    };
  const prepared = rest.map((one) => (typeof one === 'function' ? heard(one as Callback) : one));
  if (isSubmittable(config)) hearEvents(config, end);
  // A `Query` that has one emits no error.
  if (typeof config.callback === 'function')
    Object.defineProperty(config, 'callback', { value: heard(config.callback), enumerable: true });
  let result: unknown;
  try {
    result = query(...prepared);
  } catch (error) {
    end(true);
    throw error;
  }
  if (isSubmittable(config) || !isThenable(result)) return result;
  return untilEnd(result, end);
}

/** A cursor, a stream or a `Query` tells of its end itself. */
function hearEvents(submitted: unknown, end: EndCall): void {
  if (!(submitted instanceof EventEmitter)) return end(false);
  // A cursor says nothing of its error unless somebody listens, and fails nobody's code for that.
  if (hasMethods(submitted, 'read', 'close') && !hasMethods(submitted, 'pipe')) submitted.on('error', () => {});
  submitted.once(errorMonitor, () => end(true));
  for (const event of ['end', 'close']) submitted.once(event, () => end(false));
}
