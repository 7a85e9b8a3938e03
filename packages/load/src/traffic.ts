import { createReadStream, existsSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { constants, createGunzip } from 'node:zlib';
import type { Allowed } from './allowed.js';
import { increment, sum } from './counts.js';
import { encodeForm } from './form.js';
import { isHeaderValue, OF_CONNECTION } from './headers.js';
import { printable, shellWord } from './quantity.js';
import { UsageError } from './usage.js';

/** The largest recording that fits into memory; one is 64 MiB unless `maxBytes` was raised. */
const MAX_TEXT_BYTES = 512 * 1024 * 1024;

/** One request of a recording, as it is sent again. */
export interface TrafficRequest {
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  /** The pattern, else the path without its query. */
  readonly route: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
  /** Milliseconds on any clock. */
  readonly atMs: number;
  /** On the same clock; null when it is not known. */
  readonly answeredAtMs: number | null;
  readonly session: string | null;
  /** As it was answered then, or is to be; null when that is not known. */
  readonly status: number | null;
}

/** Traffic without a recording. */
export const makeGet = (path: string): TrafficRequest => ({
  method: 'GET',
  path,
  route: path.split('?', 1)[0]!,
  headers: {},
  body: null,
  atMs: 0,
  answeredAtMs: null,
  session: null,
  status: 200,
});

/** `'GET /users/:id'` */
export const nameRoute = ({ method, route }: TrafficRequest): string => `${method} ${route}`;

export interface Traffic {
  /** In the order in which they came. */
  readonly requests: readonly TrafficRequest[];
  /** Left out by `--allow`, by name; `''` for those that no route matched. */
  readonly notAllowed: ReadonlyMap<string, number>;
  /** Left out since they cannot be sent as they were: by why, then by name. */
  readonly unsendable: ReadonlyMap<string, ReadonlyMap<string, number>>;
  /** Its last line is not whole. */
  readonly endsBroken: boolean;
}

/**
 * Reads a recording of `perf.recording`, as it is or unpacked.
 * @throws UsageError for a file that is none
 */
export async function readTraffic(file: string, allowed: Allowed): Promise<Traffic> {
  if (!existsSync(file)) throw new UsageError(`There is no file ${file}.`);
  const requests: TrafficRequest[] = [];
  const notAllowed = new Map<string, number>();
  const unsendable = new Map<string, Map<string, number>>();
  let [bytes, number] = [0, 0];
  /** A line that is none may be the last one of a process that was killed. */
  let broken: UsageError | null = null;
  try {
    const lines = createInterface({ input: await openText(file), crlfDelay: Infinity });
    for await (const line of lines) {
      number += 1;
      if ((bytes += line.length) > MAX_TEXT_BYTES)
        throw new UsageError(`${file} holds more than 512 MiB of text: record less.`);
      if (line.trim() === '') continue;
      if (broken !== null) throw broken;
      const fields = parseFields(line);
      if (fields === null) {
        broken = new UsageError(`${file}:${number} is no JSON. Is it a recording of perf.recording?`);
        continue;
      }
      const request = readRequest(fields, `${file}:${number}`);
      const why = unsendableSince(request, fields);
      if (why !== ODD && !allowed.has(request))
        increment(notAllowed, fields['route'] === '' ? NO_ROUTE : nameRoute(request));
      else if (why === null) requests.push(request);
      else {
        const counts = unsendable.get(why) ?? new Map<string, number>();
        unsendable.set(why, counts);
        increment(counts, nameRoute(request));
      }
    }
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`${file} cannot be read: ${(error as Error).message}`, { cause: error });
  }
  if (requests.length === 0) {
    if (broken !== null && notAllowed.size + unsendable.size === 0) throw broken;
    const left = allowOptions(notAllowed, 5);
    const advice = left === '' ? '' : ` Only GET and HEAD are sent unless you say: ${left}`;
    throw new UsageError([`${file} holds no request that may be sent.${advice}`, ...notSendable(unsendable)].join(' '));
  }
  const inOrder = requests.toSorted((a, b) => a.atMs - b.atMs);
  return { requests: inOrder, notAllowed, unsendable, endsBroken: broken !== null };
}

/** Requests of a recording that are not sent. */
export function* leftOut({ notAllowed, unsendable, endsBroken }: Traffic): Generator<string> {
  if (endsBroken) yield 'The last line is not whole and left out: the process ended while it recorded.';
  yield* notSendable(unsendable);
  if (notAllowed.size === 0) return;
  const left = allowOptions(notAllowed, 3);
  const advice = left === '' ? '' : `. If they may be sent: ${left}`;
  const unmatched = notAllowed.get(NO_ROUTE) ?? 0;
  const matched = unmatched === 0 ? '' : `, ${unmatched} of them matched no route`;
  yield `${sum(notAllowed.values())} requests are left out, since they may change data${matched}${advice}`;
}

/** A path that no route matched is a stranger's text: only patterns of the application become part of a command. */
function allowOptions(notAllowed: Traffic['notAllowed'], most: number): string {
  const names = [...notAllowed.keys()].filter((name) => name !== NO_ROUTE).slice(0, most);
  return names.map((name) => `--allow ${shellWord(printable(name))}`).join(' ');
}

function* notSendable(unsendable: Traffic['unsendable']): Generator<string> {
  for (const [why, counts] of unsendable) {
    const names = [...counts.keys()].slice(0, 3).map(printable).join(', ');
    yield `${sum(counts.values())} requests are left out, since ${why}: ${names}`;
  }
}

async function openText(file: string): Promise<Readable> {
  const handle = await open(file);
  const { buffer } = await handle.read(Buffer.alloc(2), 0, 2, 0);
  await handle.close();
  const raw = createReadStream(file);
  if (buffer[0] !== 0x1f || buffer[1] !== 0x8b) return raw;
  // A process that was killed has not ended its file.
  const gunzip = createGunzip({ finishFlush: constants.Z_SYNC_FLUSH });
  raw.once('error', (error) => gunzip.destroy(error));
  return raw.pipe(gunzip);
}

const CONDITIONS = ['if-none-match', 'if-modified-since'];
/** Headers of the connection, and those that each request gets anew. */
const OWN_HEADERS = new Set([...OF_CONNECTION, 'host', 'connection', 'te']);

type Fields = Readonly<Record<string, unknown>>;

/** Null for what is no JSON. */
function parseFields(line: string): Fields | null {
  try {
    return (JSON.parse(line) ?? {}) as Fields;
  } catch {
    return null;
  }
}

function readRequest(
  { v, t, durationMs, method, url, route, headers: given, body, status, session }: Fields,
  at: string,
): TrafficRequest {
  if (v !== 1)
    throw new UsageError(
      `${at} has version ${printable(JSON.stringify(v) ?? 'none')}, and this reads version 1: how its secrets were redacted is not known.`,
    );
  if (typeof method !== 'string' || typeof url !== 'string') throw new UsageError(`${at} has no method or no URL.`);
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries((given ?? {}) as Fields))
    if (typeof value === 'string' && isSent(name, value)) headers[name.toLowerCase()] = value;
  const atMs = typeof t === 'number' ? t : 0;
  // Half a surrogate pair has no encoding.
  const path = /\p{Surrogate}/u.test(url) ? '' : encodeURI(url).replaceAll('%25', '%');
  // Further directives of the client, as `no-cache`, are not known.
  if (status !== 304) for (const name of CONDITIONS) delete headers[name];
  return {
    method,
    path,
    route: typeof route === 'string' && route !== '' ? route : path.split('?', 1)[0]!,
    headers,
    body: encodeBody(body, headers),
    atMs,
    answeredAtMs: typeof durationMs === 'number' ? atMs + durationMs : null,
    session: typeof session === 'string' ? session : null,
    status: typeof status === 'number' ? status : null,
  };
}

/** The name of requests that no route matched. */
const NO_ROUTE = '';

const ODD = 'their method or path cannot be sent';
const WITHOUT_URL = 'their URL is not in the recording as it was: it held a secret, or was too long';
const WITHOUT_BODY =
  'their body is not in the recording, which keeps JSON and forms up to `record({ maxBodyBytes })`, by default none';

/** Sent without what it had, it would be another request. */
function unsendableSince({ method, path }: TrafficRequest, { redacted }: Fields): string | null {
  if (!/^[A-Z]+$/.test(method) || !path.startsWith('/')) return ODD;
  if (!Array.isArray(redacted)) return null;
  return redacted.includes('url') ? WITHOUT_URL : redacted.includes('body') ? WITHOUT_BODY : null;
}

/** Leaves out redacted values, and values that no header may hold. */
const isSent = (name: string, value: string): boolean =>
  /^[\w-]+$/.test(name) && isHeaderValue(value) && value !== '[redacted]' && !OWN_HEADERS.has(name.toLowerCase());

function encodeBody(body: unknown, headers: Record<string, string>): string | null {
  if (body === null || body === undefined) return null;
  if (typeof body === 'string') return body;
  if (!(headers['content-type'] ?? '').startsWith('application/x-www-form-urlencoded')) {
    headers['content-type'] ??= 'application/json';
    return JSON.stringify(body);
  }
  return encodeForm(Object(body) as object);
}
