import { abortable, reasonOf, type Undelivered } from './undelivered.js';

type Post = (url: string, body: unknown, options?: object) => Promise<unknown>;

/** The part of `statsig-node` 6 that every batch of events goes out through. Not its public interface. */
export interface LegacyFetcher {
  post: Post;
}

interface LegacyInsides {
  _logger?: { fetcher?: LegacyFetcher; explicitOptions?: { localMode?: boolean; disableAllLogging?: boolean } };
  /** The `Statsig` object has it; throws before `Statsig.initialize()`. */
  _enforceServer?: () => LegacyInsides;
}

/** Where this client's posts go out; null where its insides are not those of `statsig-node` 6. */
export function fetcherOf(client: object): LegacyFetcher | null {
  const fetcher = loggerOf(client)?.fetcher;
  return typeof fetcher?.post === 'function' && Object.isExtensible(fetcher) ? fetcher : null;
}

/** Whether the application told the client to post no events. */
export function isMuted(client: object): boolean {
  const options = loggerOf(client)?.explicitOptions;
  return options?.localMode === true || options?.disableAllLogging === true;
}

function loggerOf(client: LegacyInsides): LegacyInsides['_logger'] | null {
  return client._enforceServer === undefined ? client._logger : client._enforceServer()._logger;
}

/**
 * Runs `act` and takes over the batches of events that the SDK posts in it: each goes out once, until `signal` aborts,
 * and its outcome is given back. The SDK itself would tell nobody: it resolves whether or not the batch arrived, and
 * forgets it. Its `post` is covered only while `act` runs, in one turn of the event loop, so whatever else the application
 * posts through this client is as it was.
 */
export function postsDuring(
  fetcher: LegacyFetcher,
  signal: AbortSignal,
  act: () => void,
): Promise<Undelivered | null>[] {
  const posts: Promise<Undelivered | null>[] = [];
  const inherited = !Object.hasOwn(fetcher, 'post');
  const original = fetcher.post;
  fetcher.post = (url, body, options) => {
    const events = eventsIn(body);
    if (events === null) return original.call(fetcher, url, body, options);
    const send = (until: AbortSignal): Promise<unknown> =>
      original.call(fetcher, url, body, { ...options, retries: 0, signal: until });
    const outcome = postOnce(send, events, signal);
    posts.push(outcome);
    // Resolves in any case: the SDK would report the batch to Statsig as lost, which it is not.
    return outcome;
  };
  try {
    act();
  } finally {
    if (inherited) Reflect.deleteProperty(fetcher, 'post');
    else fetcher.post = original;
  }
  return posts;
}

async function postOnce(
  send: (signal: AbortSignal) => Promise<unknown>,
  events: number,
  signal: AbortSignal,
): Promise<Undelivered | null> {
  try {
    await abortable(signal, send(signal));
    return null;
  } catch (error) {
    const { reason, maySendAgain } = signal.aborted ? unknown(signal.reason) : failureOf(error);
    return { events, reason, again: maySendAgain ? (later) => postOnce(send, events, later) : null };
  }
}

interface Failure {
  reason: string;
  maySendAgain: boolean;
}

/** It may have arrived: sent again it could be counted twice, so it is not. */
const unknown = (error: unknown): Failure => ({ reason: reasonOf(error), maySendAgain: false });

/** Nothing was sent: there was no connection to send it on. */
const NO_CONNECTION = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENETDOWN',
  'EADDRNOTAVAIL',
  'UND_ERR_CONNECT_TIMEOUT',
]);

function failureOf(error: unknown): Failure {
  const { code, cause } = (error ?? {}) as { code?: unknown; cause?: { code?: unknown } };
  const known = code ?? cause?.code;
  if (typeof known === 'string' && NO_CONNECTION.has(known)) {
    return { reason: `no connection to Statsig (${known})`, maySendAgain: true };
  }
  // The SDK gives the status nowhere but in this text. Another text reads as unknown, which loses and counts the batch.
  const status = /failed with status (\d{3})$/.exec(error instanceof Error ? error.message : '')?.[1];
  if (status === undefined) return unknown(typeof known === 'string' ? `the connection broke (${known})` : error);
  const maySendAgain = Number(status) >= 500 || status === '408' || status === '429';
  return { reason: `Statsig answered with status ${status}`, maySendAgain };
}

/** How many events a post holds, without the SDK's report on itself; null when it is a post of something else. */
function eventsIn(body: unknown): number | null {
  const { events } = (body ?? {}) as { events?: unknown };
  if (!Array.isArray(events)) return null;
  return events.filter((event: { eventName?: unknown }) => event.eventName !== 'statsig::diagnostics').length;
}
