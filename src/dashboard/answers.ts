import { brotliDecompressSync } from 'node:zlib';
import type { RawResponse } from '../core/guarded.js';
import type { PerfRequest } from '../core/perf-request.js';
import { displayJson } from '../core/printable.js';
import type { Profiler } from '../ports/loop-profile.js';
import type { Access } from './access.js';
import type { DashboardView } from './dashboard-view.js';
import { pageHtml, refusedHtml } from './html.js';
import { formatPage } from './text-view.js';

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
const SENT_AS = 'Send it as `Authorization: Bearer <token>`.';

const send = (status: number, type: string, body: string, headers: Record<string, string> = {}): RawResponse => ({
  status,
  type,
  body,
  headers: { ...SAFE, ...headers },
});

/** Answers the page's requests. Each gets the framework's request, and decides first who may read. */
export class Answers {
  constructor(
    private readonly access: Access,
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
    const admitted = await this.access.admit(request, query);
    if (admitted === null) return this.refused(isText ? null : base);
    if (isText) return this.text(query);
    const headers: Record<string, string> = admitted.cookie === null ? {} : { 'set-cookie': admitted.cookie };
    // A program may keep no cookie: it gets its answer without a redirect.
    if (asksForHtml(request) && (isBare || query.has('token')))
      return send(303, TEXT, '', { ...headers, location: base });
    return send(200, HTML, pageHtml(this.about), headers);
  };

  /** The page polls it; with `Accept: text/plain` the same as text. */
  readonly data = this.forViewer(async ({ headers: { accept = '' } }, query) => {
    // Neither `curl` alone nor clients that take both: this is the address of the JSON.
    if (accept.includes('text/plain') && !accept.includes('json')) return this.text(query);
    const data = await this.view.read({ scope: query.get('scope'), route: query.get('route') });
    return send(200, JSON_TYPE, displayJson(data));
  });

  /** Stacks of the event loop as a `.cpuprofile`: for the page's flame graphs and `npx nestjs-perf profile`. */
  readonly profile = this.forViewer(async (_, query) => {
    if (this.profiler === null) return send(404, TEXT, 'Stacks are not sampled: set `eventLoop: { profile: true }`.\n');
    const seconds = query.has('seconds') ? Number(query.get('seconds')) : null;
    if (seconds !== null && !(seconds >= 1 && seconds <= 300))
      return send(400, TEXT, '`seconds` must be a number from 1 to 300.\n');
    const profile = await this.profiler.profile({ route: query.get('route'), seconds });
    return send(200, JSON_TYPE, displayJson(profile.toCpuProfile()));
  });

  /** Contains nothing of the application: open to everybody, and kept by browsers. */
  readonly asset = (type: string, brotli: string) => {
    const encoded = Buffer.from(brotli, 'base64');
    let plain: Uint8Array | null = null;
    return async ({ headers }: PerfRequest): Promise<RawResponse<Uint8Array>> =>
      ACCEPTS_BROTLI.test(headers['accept-encoding'] ?? '')
        ? { status: 200, type, body: encoded, headers: { ...FOR_EVER, 'content-encoding': 'br' } }
        : { status: 200, type, body: (plain ??= brotliDecompressSync(encoded)), headers: FOR_EVER };
  };

  private forViewer(
    answer: (request: PerfRequest, query: URLSearchParams) => Promise<RawResponse>,
  ): (request: PerfRequest) => Promise<RawResponse> {
    return async (request) => {
      const { query } = splitUrl(request.url);
      if ((await this.access.admit(request, query)) === null) return this.refused(null);
      return answer(request, query);
    };
  }

  /** For a terminal. `?route=`: whose last hour is shown. */
  private async text(query: URLSearchParams): Promise<RawResponse> {
    const route = query.get('route') || null;
    const data = await this.view.read({ scope: query.get('scope'), route: null });
    return send(200, TEXT, formatPage(data, await this.view.readPast(data.scope, route), route));
  }

  /** `base`: for a browser, where the page's files are; null for others. */
  private refused(base: string | null): RawResponse {
    this.onRefused();
    const byToken = this.access.token !== null;
    const status = byToken ? 401 : 403;
    const headers: Record<string, string> = byToken ? { 'www-authenticate': 'Bearer' } : {};
    if (base !== null) return send(status, HTML, refusedHtml(base, this.about.style, byToken), headers);
    const token = this.access.isPrinted ? PRINTED_TOKEN : GIVEN_TOKEN;
    return send(status, TEXT, byToken ? `Unauthorized: the token ${token}. ${SENT_AS}\n` : 'Forbidden\n', headers);
  }
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
