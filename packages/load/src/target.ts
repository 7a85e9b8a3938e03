import { UsageError } from './usage.js';

/** This machine, without asking a name server. */
const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;

/**
 * A URL that may be loaded: on this machine, or a host that `--target-is-mine` names in full.
 * @throws UsageError
 */
export function checkTarget(text: string | undefined, option: string, mine: readonly string[]): URL {
  if (text === undefined) throw new UsageError(`${option} is missing: a URL such as http://127.0.0.1:3000.`);
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !/^https?:$/.test(url.protocol))
    throw new UsageError(`${option} must be an http or https URL such as http://127.0.0.1:3000, got "${text}".`);
  if (url.username !== '' || url.password !== '')
    throw new UsageError(`${option} must not hold a password: use --header 'authorization: …'.`);
  if (!LOOPBACK.test(url.hostname) && !mine.includes(url.hostname) && !mine.includes(url.host))
    throw new UsageError(
      `${option} is ${url.hostname}, not this machine. If it is yours to load, say so: --target-is-mine ${url.hostname}`,
    );
  return url;
}

/**
 * The prefix of each recorded path: `http://127.0.0.1/v2` too.
 * @throws UsageError for a query, which could stand nowhere
 */
export function readBase(url: URL, option: string): URL {
  if (url.search === '') return url;
  throw new UsageError(`${option} must hold no query: each request of the recording has its own.`);
}
