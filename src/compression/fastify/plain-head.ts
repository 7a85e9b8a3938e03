import { type IncomingMessage, ServerResponse } from 'node:http';
import { VARY } from '../rules/field-value.js';

type Headers = Readonly<Record<string, unknown>>;
/** Node's step that makes a head of a status line and headers, the same since its first versions; undocumented. */
type StoreHeader = (this: Storing, firstLine: string, headers: Headers | undefined) => void;
interface Storing extends ServerResponse {
  _storeHeader: StoreHeader;
  _header: string;
  _hasBody: boolean;
  _contentLength: number | null;
  _removedContLen: boolean;
}

const storeHeader = (ServerResponse.prototype as Storing)._storeHeader;

/** An application has a handful of types; one that makes them up gets Node's own way for further ones. */
const MAX_TYPES = 64;

/**
 * Gives Node the headers of the plainest response (type, `Vary`, length) as lines that are known to be valid. Node would run two
 * regular expressions over each, for every response again: more than all else that compression costs a small one.
 *
 * Whether Node's step still works in this way is seen before it is used: for a response with a body, over HTTP/1.1, the head must be
 * the one that Node makes by itself. To others the way is not open.
 */
export class PlainHeads {
  private readonly steps = new Map<string, StoreHeader>();
  private type = '';
  private step = storeHeader;

  /** The response will be sent with `type` and {@link VARY}, unless a later hook adds to that: then its head is Node's. */
  prepare(response: ServerResponse, type: string): void {
    const storing = response as Storing;
    // Not one of Node's HTTP/1 server, or somebody else has his own way.
    if (storing._storeHeader !== storeHeader) return;
    // Most often the type of the response before.
    if (type !== this.type) this.look(type);
    storing._storeHeader = this.step;
  }

  private look(type: string): void {
    this.step = this.steps.get(type) ?? this.learn(type);
    this.type = type;
  }

  private learn(type: string): StoreHeader {
    if (this.steps.size >= MAX_TYPES) return storeHeader;
    const own = stepFor(type);
    const step = isNodesHead(own, type) ? own : storeHeader;
    this.steps.set(type, step);
    return step;
  }
}

function stepFor(type: string): StoreHeader {
  const lines = `content-type: ${type}\r\nvary: ${VARY}\r\n`;
  return function (firstLine, headers) {
    const length = headers === undefined || headers === null ? null : lengthOfPlain(headers, type);
    // Node goes by the header where there is no body, for HTTP/1.0, and where a length had been taken away before.
    if (length === null || !this._hasBody || !this.useChunkedEncodingByDefault || this._removedContLen) {
      storeHeader.call(this, firstLine, headers);
      return;
    }
    this._contentLength = length;
    storeHeader.call(this, firstLine + lines, undefined);
  };
}

/** The length that the headers tell, if they are just the plain ones. */
function lengthOfPlain(headers: Headers, type: string): number | null {
  const text = headers['content-length'];
  if (typeof text !== 'string' || headers['content-type'] !== type || headers['vary'] !== VARY) return null;
  let count = 0;
  for (const _name in headers) count += 1;
  const length = Number(text);
  return count === 3 && length >= 0 ? length : null;
}

/** Whether `step` makes the head that Node makes: the same lines, in whatever order and case of names. */
function isNodesHead(step: StoreHeader, type: string): boolean {
  const headers = { 'content-type': type, vary: VARY, 'content-length': '2' };
  try {
    return linesOf(step, headers).join() === linesOf(storeHeader, headers).join();
  } catch {
    // A type that Node refuses: it shall say so itself.
    return false;
  }
}

function linesOf(step: StoreHeader, headers: Headers): string[] {
  const request = { method: 'GET', httpVersionMajor: 1, httpVersionMinor: 1, headers: {} } as IncomingMessage;
  const response = new ServerResponse(request) as Storing;
  response.sendDate = false;
  // Not by `writeHead`, which others may have wrapped to hear of responses.
  step.call(response, 'HTTP/1.1 200 OK\r\n', headers);
  return response._header
    .split('\r\n')
    .map((line) => line.replace(/^[^:]+/, (name) => name.toLowerCase()))
    .sort();
}
