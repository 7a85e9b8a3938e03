import { brotliDecompressSync } from 'node:zlib';
import type { RawResponse } from '../core/guarded.js';
import type { PerfRequest } from '../core/perf-request.js';
import { displayJson } from '../core/printable.js';
import type { Profiler } from '../ports/loop-profile.js';
import type { Access } from './access.js';
import type { DashboardView } from './dashboard-view.js';
import { pageHtml, refusedHtml } from './html.js';
import { formatPage } from './text-view.js';
import type { Scope } from './view.js';
import type { Viewers } from './viewers.js';

const HTML = 'text/html; charset=utf-8';
const TEXT = 'text/plain; charset=utf-8';
const JSON_TYPE = 'application/json; charset=utf-8';

/** The page's own policy: nothing but its own script and style, no inline code, in no frame. */
const SAFE: Readonly<Record<string, string>> = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; form-action 'self'; " +
    "base-uri 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
  vary: 'accept',
};
const FOR_EVER = { ...SAFE, 'cache-control': 'public, max-age=31536000, immutable', vary: 'accept-encoding' };
const ACCEPTS_BROTLI = /\bbr\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))/i;

const PRINTED_TOKEN = 'stands in the log of this process, in the line "Perf dashboard"';
const GIVEN_TOKEN = 'is the one of `dashboard.token` or PERF_TOKEN';
const noToken = (isPrinted: boolean): string =>
  `Unauthorized: the token ${isPrinted ? PRINTED_TOKEN : GIVEN_TOKEN}. Send it as \`Authorization: Bearer <token>\`.\n`;

/** An asset as it is sent. */
export interface Asset {
  readonly type: string;
  readonly brotli: string;
}

/** Answers the page's requests. Each gets the framework's request, and decides first who may read. */
export class Answers {
  constructor(
    private readonly access: Access,
    private readonly viewers: Viewers,
    private readonly view: DashboardView,
    /** Null where nothing is sampled. */
    private readonly profiler: Profiler | null,
    private readonly about: { readonly script: string; readonly style: string; readonly path: string },
    /** A request without a token gets the place where the token is printed. */
    private readonly onRefused: () => void,
  ) {}

  /** The page, or the same as text for a terminal. */
  readonly page = async (request: PerfRequest): Promise<RawResponse> => {
    const { path, query } = splitUrl(request.url);
    const isText = prefersText(request);
    const isBare = !path.endsWith('/');
    // Relative, so that it is right behind a proxy that has taken a part of the path away.
    // The request's own address may lead elsewhere.
    const base = isBare ? `${this.about.path.slice(this.about.path.lastIndexOf('/') + 1)}/` : './';
    const { admitted, cookie } = await this.access.admit(request, query);
    if (!admitted) return this.refused(isText ? null : base);
    if (isText) return this.text(query);
    const headers = { ...SAFE, ...(cookie === null ? null : { 'set-cookie': cookie }) };
    // A program may keep no cookie: it gets its answer without a redirect.
    if (asksForHtml(request) && (isBare || query.has('token')))
      return { status: 303, type: TEXT, body: '', headers: { ...headers, location: base } };
    return { status: 200, type: HTML, body: pageHtml(this.about), headers };
  };

  /** The page polls it; with `Accept: text/plain` the same as text. */
  readonly data = async (request: PerfRequest): Promise<RawResponse> => {
    const { query } = splitUrl(request.url);
    if (!(await this.access.admit(request, query)).admitted) return this.refused(null);
    // Neither `curl` alone nor clients that take both: this is the address of the JSON.
    const { accept = '' } = request.headers;
    if (accept.includes('text/plain') && !accept.includes('json')) return this.text(query);
    if (!this.viewers.admits(query.get('viewer') ?? '')) return tooMany();
    const body = await this.view.answer({
      scope: readScope(query),
      filter: (query.get('filter') ?? '').slice(0, 200),
      routeId: query.get('route'),
    });
    return { status: 200, type: JSON_TYPE, body, headers: SAFE };
  };

  /** Stacks of the event loop as a `.cpuprofile`: for the page's flame graphs and `npx nestjs-perf profile`. */
  readonly profile = async (request: PerfRequest): Promise<RawResponse> => {
    const { query } = splitUrl(request.url);
    if (!(await this.access.admit(request, query)).admitted) return this.refused(null);
    if (!this.viewers.admits(query.get('viewer') ?? 'profile')) return tooMany();
    const refuse = (status: number, body: string) => ({ status, type: TEXT, body, headers: SAFE });
    if (this.profiler === null) return refuse(404, 'Stacks are not sampled: set `eventLoop: { profile: true }`.\n');
    const seconds = query.has('seconds') ? Number(query.get('seconds')) : null;
    if (seconds !== null && !(seconds >= 1 && seconds <= 300))
      return refuse(400, '`seconds` must be a number from 1 to 300.\n');
    const profile = await this.profiler.profile({ route: query.get('route'), seconds });
    return { status: 200, type: JSON_TYPE, body: displayJson(profile.toCpuProfile()), headers: SAFE };
  };

  /** Holds nothing of the application: open to everybody, and kept by browsers. */
  readonly asset = ({ type, brotli }: Asset) => {
    const encoded = Buffer.from(brotli, 'base64');
    let plain: Uint8Array | null = null;
    return async ({ headers }: PerfRequest): Promise<RawResponse<Uint8Array>> =>
      ACCEPTS_BROTLI.test(headers['accept-encoding'] ?? '')
        ? { status: 200, type, body: encoded, headers: { ...FOR_EVER, 'content-encoding': 'br' } }
        : { status: 200, type, body: (plain ??= brotliDecompressSync(encoded)), headers: FOR_EVER };
  };

  /** For a terminal. `route`: whose last hour is shown; null for all. */
  private async text(query: URLSearchParams): Promise<RawResponse> {
    if (!this.viewers.admits('')) return tooMany();
    const route = query.get('route') || null;
    const { data, past } = await this.view.answerOnce(route, readScope(query));
    return { status: 200, type: TEXT, body: formatPage(data, past, route), headers: SAFE };
  }

  /** `base`: for a browser, where the page's files are; null for others. */
  private refused(base: string | null): RawResponse {
    this.onRefused();
    const byToken = this.access.token !== null;
    const status = byToken ? 401 : 403;
    const headers = byToken ? { ...SAFE, 'www-authenticate': 'Bearer' } : SAFE;
    if (base !== null) return { status, type: HTML, body: refusedHtml(base, this.about.style, byToken), headers };
    return { status, type: TEXT, body: byToken ? noToken(this.access.isPrinted) : 'Forbidden\n', headers };
  }
}

/** `?scope=pod`: the one that answers, where all pods are known. */
function readScope(query: URLSearchParams): Scope | null {
  const asked = query.get('scope');
  return asked === 'pod' || asked === 'fleet' ? asked : null;
}

function tooMany(): RawResponse {
  const body = 'Too many viewers: at most 8 look at a time. One that stops looking makes room within 30 s.\n';
  return { status: 429, type: TEXT, body, headers: { ...SAFE, 'retry-after': '30' } };
}

function splitUrl(url: string): { path: string; query: URLSearchParams } {
  const [path = '', ...rest] = url.split('?');
  return { path, query: new URLSearchParams(rest.join('?')) };
}

const asksForHtml = ({ headers }: PerfRequest): boolean => (headers.accept ?? '').includes('text/html');

/** A client that accepts anything gets the page too, unless it is a program for terminals. */
function prefersText(request: PerfRequest): boolean {
  if (asksForHtml(request)) return false;
  const { accept = '', 'user-agent': program = '' } = request.headers;
  return accept.includes('text/plain') || /^(curl|wget|httpie)\//i.test(program);
}
