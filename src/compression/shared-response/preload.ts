import * as http from 'node:http';
import * as http2 from 'node:http2';
import * as https from 'node:https';
import * as net from 'node:net';
import * as tls from 'node:tls';
import { reasonOf } from '../../core/reason.js';

/** A route of `@SharedResponse({ preload: true })`. */
export interface PreloadedRoute {
  readonly pattern: string;
  /** `'FeedController.find'` */
  readonly handler: string;
}

/** What a preloading request calls itself, for guards and access logs. */
const USER_AGENT = 'nestjs-perf preload';
const DEADLINE_MS = 30_000;

/** Whether a pattern names exactly one path. */
export const isOnePath = (pattern: string): boolean => /^\/[\w\-.~/%]*$/.test(pattern);

/** Asks an application for the answers of the routes that there are once it listens: requests like any other, guards included. */
export function preloadOnceListening(
  server: http.Server,
  routes: readonly PreloadedRoute[],
  failed: (handler: string, reason: string) => void,
): void {
  server.once('listening', () => {
    for (const { handler, pattern } of routes) {
      get(server, pattern).then(
        (status) => status === 200 || failed(handler, `the answer has status ${status}`),
        (error: unknown) => failed(handler, reasonOf(error)),
      );
    }
  });
}

function get(server: net.Server, path: string): Promise<number> {
  const address = server.address();
  const headers = { 'user-agent': USER_AGENT, 'accept-encoding': 'gzip' };
  if (!(server instanceof http.Server || server instanceof https.Server)) return getOverHttp2(server, path, headers);
  const where =
    typeof address === 'string' ? { socketPath: address } : { host: hostOf(address?.address), port: address?.port };
  const options = { ...where, path, headers: { ...headers, host: 'localhost' }, agent: false, timeout: DEADLINE_MS };
  return new Promise((resolve, reject) => {
    const answered = (response: http.IncomingMessage): void => {
      response.resume().once('end', () => resolve(response.statusCode ?? 0));
    };
    // Its own certificate, on its own address.
    const request =
      server instanceof https.Server
        ? https.get({ ...options, rejectUnauthorized: false }, answered)
        : http.get(options, answered);
    request.once('error', reject);
    request.once('timeout', () => request.destroy(tooLate()));
  });
}

/** A server of HTTP/2 need not understand anything else. */
function getOverHttp2(server: net.Server, path: string, headers: http2.OutgoingHttpHeaders): Promise<number> {
  const address = server.address();
  const where =
    typeof address === 'string' ? { path: address } : { host: hostOf(address?.address), port: address?.port ?? 0 };
  const isSecure = server instanceof tls.Server;
  const createConnection = (): net.Socket =>
    isSecure ? tls.connect({ ...where, rejectUnauthorized: false, ALPNProtocols: ['h2'] }) : net.connect(where);
  return new Promise((resolve, reject) => {
    const session = http2.connect(isSecure ? 'https://localhost' : 'http://localhost', { createConnection });
    session.once('error', reject);
    const request = session.request({ ...headers, ':path': path });
    request.once('response', ({ ':status': status }) => request.resume().once('end', () => resolve(status ?? 0)));
    request.once('error', reject);
    request.once('close', () => {
      session.close();
      // Nothing where the answer has come.
      reject(new Error('the stream was closed without an answer'));
    });
    request.setTimeout(DEADLINE_MS, () => request.destroy(tooLate()));
  });
}

const tooLate = (): Error => new Error(`no answer within ${DEADLINE_MS} ms`);

/** An application that listens everywhere is reached at home. */
function hostOf(address = 'localhost'): string {
  if (address === '::') return '::1';
  return address === '0.0.0.0' ? '127.0.0.1' : address;
}
