import { Pool } from 'undici';
import type { TrafficRequest } from './traffic.js';

export interface Answer {
  /** 0 when there was none. */
  readonly status: number;
  /** Why there was none: `'timeout'`, `'ECONNREFUSED'`. */
  readonly failure: string | null;
  /** Its body, when it was asked for. */
  readonly body: Buffer | null;
  readonly type: string;
  /** The target of a redirect, without the origin of the server itself. */
  readonly location: string;
}

/** A longer answer is a failure where its body is compared. */
const MAX_BODY_BYTES = 16 * 1024 * 1024;

type Sent = Pick<TrafficRequest, 'method' | 'path' | 'headers' | 'body'>;

/** As many connections to one origin as there are requests in flight: nobody waits for another's answer. */
export class Client {
  private readonly pool: Pool;

  /** Before each path; without a slash at its end. */
  private readonly prefix: string;

  constructor(
    private readonly base: URL,
    private readonly timeoutMs: number,
    /** Beside each request's own. */
    private readonly headers: Readonly<Record<string, string>>,
  ) {
    this.prefix = base.pathname.replace(/\/+$/, '');
    this.pool = new Pool(base.origin, { connections: null, pipelining: 1, headersTimeout: 0, bodyTimeout: 0 });
  }

  /** Never rejects. Follows no redirection: it could lead to another host. */
  async send({ method, path, headers, body }: Sent, keepBody = false): Promise<Answer> {
    try {
      const response = await this.pool.request({
        method,
        path: this.prefix + path,
        headers: { ...headers, ...this.headers },
        body,
        signal: AbortSignal.timeout(this.timeoutMs),
      });
      const type = String(response.headers['content-type'] ?? '');
      const location = this.resolveRedirect(String(response.headers['location'] ?? ''), path);
      const head = { status: response.statusCode, failure: null, type, location };
      const kept: Buffer[] = [];
      let bytes = 0;
      for await (const chunk of response.body as AsyncIterable<Buffer>) {
        if (!keepBody) continue;
        // Leaving the loop destroys the body.
        if ((bytes += chunk.length) > MAX_BODY_BYTES) throw new Error('the answer is longer than 16 MiB');
        kept.push(chunk);
      }
      return { ...head, body: keepBody ? Buffer.concat(kept) : null };
    } catch (error) {
      const { name, code, message } = error as NodeJS.ErrnoException;
      const failure = name === 'TimeoutError' ? 'timeout' : (code ?? message);
      return { status: 0, failure, type: '', location: '', body: null };
    }
  }

  /** Two targets of one release lead to the same place, each its own. */
  private resolveRedirect(location: string, path: string): string {
    const own = this.base.origin + this.prefix;
    if (location === '' || !URL.canParse(location, own + path)) return location;
    const { href } = new URL(location, own + path);
    return `${href}/`.startsWith(`${own}/`) ? href.slice(own.length) || '/' : href;
  }

  /** Gives up what is still in flight. */
  close(): Promise<void> {
    return this.pool.destroy();
  }
}
