import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Server } from 'node:http';
import { hostname } from 'node:os';
import { Server as TlsServer } from 'node:tls';
import type { Authorize } from '../core/guarded.js';
import type { PerfRequest } from '../core/perf-request.js';

/** A request that may read the page. `cookie`: a browser may change its token for it. */
interface Admitted {
  readonly cookie: string | null;
}

/** Decides who may read the page: the application's `authorize`, else the token, or a cookie that was given for it. */
export class Access {
  /** Null where the application decides. */
  readonly token: string | null;
  private readonly key: Buffer;

  constructor(
    private readonly authorize: Authorize | null,
    /** The application's own, which all its pods have; null makes one for this process. */
    private readonly ownToken: string | null,
    private readonly tokenTtlMs: number,
    /** The address where the server listens: it distinguishes applications of one host. */
    private readonly address: () => string,
  ) {
    this.token = authorize === null ? (ownToken ?? randomBytes(16).toString('hex')) : null;
    // Pods with one token take each other's cookies.
    this.key =
      ownToken === null ? randomBytes(32) : createHmac('sha256', ownToken).update('nestjs-perf cookie').digest();
  }

  /** Whether this process has made the token, and may print it. */
  get isPrinted(): boolean {
    return this.token !== null && this.ownToken === null;
  }

  /** Null for a request that may not read. Rejects when `authorize` does. */
  async admit(request: PerfRequest, query: URLSearchParams): Promise<Admitted | null> {
    const admitIf = (isAdmitted: boolean): Admitted | null => (isAdmitted ? { cookie: null } : null);
    if (this.authorize !== null) return admitIf(await this.authorize(request));
    const given = query.get('token');
    if (given !== null) return isEqual(given, this.token!) ? { cookie: this.cookieFor(request) } : null;
    const bearer = /^bearer +(.+)$/i.exec(request.headers.authorization ?? '')?.[1];
    // One that is wrong may be a proxy's, and proves nothing.
    if (bearer !== undefined && isEqual(bearer, this.token!)) return admitIf(true);
    return admitIf(isOfThisSite(request) && this.hasCookie(request));
  }

  /** The cookie has its end and our seal on it: a copy of it is worth no more than the time that is left. */
  private cookieFor(request: PerfRequest): string {
    const endsAt = Math.round(Date.now() + this.tokenTtlMs).toString(36);
    const maxAge = Math.max(1, Math.round(this.tokenTtlMs / 1_000));
    const secure = isEncrypted(request) ? '; Secure' : '';
    const value = `${endsAt}.${this.sign(endsAt)}`;
    return `${this.cookieName()}=${value}; Max-Age=${maxAge}; Path=/; HttpOnly; SameSite=Strict${secure}`;
  }

  private hasCookie(request: PerfRequest): boolean {
    const own = this.cookieName();
    return (request.headers.cookie ?? '').split(/; */).some((pair) => {
      const [name = '', endsAt = '', seal = ''] = pair.split(/[=.]/);
      return name === own && isEqual(seal, this.sign(endsAt)) && Number.parseInt(endsAt, 36) > Date.now();
    });
  }

  /**
   * Browsers send a host's cookies to all its ports, and of all behind its proxy: applications must not overwrite
   * each other's. The next process of this one should: its name is the same.
   */
  private cookieName(): string {
    const own = [hostname(), process.argv[1], this.address()].join('\n');
    const application = this.ownToken === null ? own : this.sign('name');
    return `nestjs-perf-${createHash('sha256').update(application).digest('hex').slice(0, 8)}`;
  }

  private sign(endsAt: string): string {
    return createHmac('sha256', this.key).update(endsAt).digest('base64url');
  }
}

/** Compares hashes, in a time that does not depend on what is right. */
function isEqual(given: string, right: string): boolean {
  const hash = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(hash(given), hash(right));
}

/** The first of several proxies is the browser's. */
const isEncrypted = (request: PerfRequest): boolean =>
  ((request['raw'] ?? request) as { socket?: { encrypted?: boolean } }).socket?.encrypted === true ||
  /^\s*https\s*(?:,|$)/i.test(String(request.headers['x-forwarded-proto']));

/** `SameSite` lets sibling domains in: they may lead here, and not read, whatever CORS the application allows. */
function isOfThisSite({ headers }: PerfRequest): boolean {
  const site = headers['sec-fetch-site'];
  // Browsers send it over TLS and to localhost alone; a script of another origin has `Origin` everywhere, the page's own has none.
  if (site === undefined) return headers.origin === undefined;
  return site === 'same-origin' || site === 'none' || headers['sec-fetch-mode'] === 'navigate';
}

const EVERY_ADDRESS = new Set(['::', '0.0.0.0', '::1']);

/** The address at which a server can be reached from its own machine; `''` when it does not listen on a port. */
export function findAddress(server: Server | null): string {
  const bound = server?.address() ?? null;
  if (bound === null || typeof bound === 'string') return '';
  const { address, port } = bound;
  const host = EVERY_ADDRESS.has(address) ? 'localhost' : address.includes(':') ? `[${address}]` : address;
  return `${server instanceof TlsServer ? 'https' : 'http'}://${host}:${port}`;
}
