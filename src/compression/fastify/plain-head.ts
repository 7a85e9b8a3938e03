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
}

const storeHeader = (ServerResponse.prototype as Storing)._storeHeader;

/**
 * Gives Node the headers of the plainest response (type, `Vary`, length) as lines that are known to be valid. Node would run two
 * regular expressions over each, for every response again: more than all else that compression costs a small one.
 *
 * Whether Node's step still works in this way is seen before it is used: the head must be the one that Node makes by itself.
 */
export class PlainHeads {
  private type = '';
  private step = storeHeader;

  /** The response will be sent with `type` and {@link VARY}, unless a later hook adds to that: then its head is Node's. */
  prepare(response: ServerResponse, type: string): void {
    const storing = response as Storing;
    // Not one of Node's HTTP/1 server, or somebody else has his own way.
    if (storing._storeHeader !== storeHeader) return;
    // Most often the type of the response before.
    if (type !== this.type) this.learn(type);
    storing._storeHeader = this.step;
  }

  private learn(type: string): void {
    const step = stepFor(type);
    this.step = isNodesHead(step, type) ? step : storeHeader;
    this.type = type;
  }
}

function stepFor(type: string): StoreHeader {
  const lines = `content-type: ${type}\r\nvary: ${VARY}\r\n`;
  return function (firstLine, headers) {
    const length = headers === undefined || headers === null ? -1 : lengthOfPlain(headers, type);
    // Without a body, or for HTTP/1.0, Node goes by the header.
    if (!(length >= 0) || !this._hasBody || !this.useChunkedEncodingByDefault) {
      storeHeader.call(this, firstLine, headers);
      return;
    }
    this._contentLength = length;
    storeHeader.call(this, firstLine + lines, undefined);
  };
}

/** The length that the headers tell if they are just the plain ones; else a negative number or NaN. */
function lengthOfPlain(headers: Headers, type: string): number {
  if (headers['content-type'] !== type || headers['vary'] !== VARY) return -1;
  let count = 0;
  for (const _name in headers) count += 1;
  return count === 3 ? Number(headers['content-length']) : -1;
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
  response._storeHeader = step;
  response.writeHead(200, headers as Record<string, string>);
  return response._header
    .split('\r\n')
    .map((line) => line.replace(/^[^:]+/, (name) => name.toLowerCase()))
    .sort();
}
