// One keep-alive HTTP/1.1 connection that sends a prepared request and reads its response, one at a time. It knows just
// enough HTTP to tell where a response ends (RFC 9112, section 6.3), so that the load generator is never the bottleneck.
import { connect } from 'node:net';

const HEAD_END = '\r\n\r\n';
const EMPTY = Buffer.alloc(0);

/** The bytes of `{ method, path, headers, body }`, made once and sent many times. */
export function prepareRequest({ method = 'GET', path = '/', headers = {}, body = '' }) {
  const payload = Buffer.from(body);
  const all = { host: '127.0.0.1', ...headers };
  if (payload.length > 0 || method === 'POST') all['content-length'] = payload.length;
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return {
    bytes: Buffer.concat([Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n`), payload]),
    bodiless: method === 'HEAD',
  };
}

export class HttpConnection {
  #socket;
  #held = EMPTY;
  #done = null;
  #bodiless = false;
  #status = 0;
  #bodyBytes = 0;
  /** The part that comes next. `#left` counts the bytes of a body or a chunk, with the line end of a chunk. */
  #reading = 'head';
  #left = 0;
  #readers = {
    head: (data) => this.#readHead(data),
    body: (data) => this.#readBody(data),
    'chunk-size': (data) => this.#readChunkSize(data),
    chunk: (data) => this.#readBody(data),
    trailer: (data) => this.#readTrailer(data),
  };

  constructor(port) {
    this.closed = false;
    this.#socket = connect({ port, host: '127.0.0.1', noDelay: true });
    this.connected = new Promise((resolve, reject) => {
      this.#socket.once('connect', resolve);
      this.#socket.once('error', reject);
    });
    this.#socket.on('data', (chunk) => this.#read(chunk));
    this.#socket.on('error', (error) => this.#lost(error));
    this.#socket.on('close', () => this.#lost(new Error('the server closed the connection')));
  }

  /** Sends a prepared request; `done(error, status, bodyBytes)` is called once. */
  send(request, done) {
    this.#done = done;
    this.#bodiless = request.bodiless;
    if (this.closed) this.#lost(new Error('the connection is closed'));
    else this.#socket.write(request.bytes);
  }

  close() {
    this.#socket.destroy();
  }

  #lost(error) {
    this.closed = true;
    this.#tell(error, 0, 0);
  }

  #tell(error, status, bodyBytes) {
    const done = this.#done;
    this.#done = null;
    done?.(error, status, bodyBytes);
  }

  #read(chunk) {
    let data = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    this.#held = EMPTY;
    while (data.length > 0) {
      // The bytes that it used; 0 when it needs more.
      const used = this.#readers[this.#reading](data);
      if (used === 0) {
        this.#held = data;
        return;
      }
      data = data.subarray(used);
    }
  }

  #readHead(data) {
    const end = data.indexOf(HEAD_END);
    if (end === -1) return 0;
    const head = data.latin1Slice(0, end).toLowerCase();
    this.#status = Number(head.slice(9, 12));
    this.#bodyBytes = 0;
    const length = /\r\ncontent-length: *(\d+)/.exec(head);
    this.#left = length === null ? 0 : Number(length[1]);
    if (this.#bodiless || this.#status === 204 || this.#status === 304) this.#finish();
    else if (head.includes('\r\ntransfer-encoding: chunked')) this.#reading = 'chunk-size';
    else if (length === null) this.#lost(new Error('a response with neither length nor chunks'));
    else if (this.#left === 0) this.#finish();
    else this.#reading = 'body';
    return end + HEAD_END.length;
  }

  #readBody(data) {
    const used = Math.min(this.#left, data.length);
    this.#left -= used;
    this.#bodyBytes += used;
    if (this.#left > 0) return used;
    if (this.#reading === 'body') this.#finish();
    else {
      this.#bodyBytes -= 2;
      this.#reading = 'chunk-size';
    }
    return used;
  }

  #readChunkSize(data) {
    const end = data.indexOf('\r\n');
    if (end === -1) return 0;
    const size = Number.parseInt(data.latin1Slice(0, end), 16);
    this.#left = size + 2;
    this.#reading = size === 0 ? 'trailer' : 'chunk';
    return end + 2;
  }

  #readTrailer(data) {
    const end = data.indexOf('\r\n');
    if (end === -1) return 0;
    if (end === 0) this.#finish();
    return end + 2;
  }

  #finish() {
    this.#reading = 'head';
    this.#tell(null, this.#status, this.#bodyBytes);
  }
}
