import { request as httpRequest, type IncomingMessage, type OutgoingHttpHeaders, type Server } from 'node:http';
import { request as httpsRequest, Server as HttpsServer } from 'node:https';
import { optionError } from '../../core/option.js';

const METHODS = ['get', 'post', 'put', 'patch', 'delete', 'head', 'options'] as const;
type Method = (typeof METHODS)[number];

/** One request: its method with the path, `{ get: '/orders/7' }`, and what is sent with it. */
export type WorkRequest = { readonly [M in Method]?: string } & {
  readonly headers?: Readonly<Record<string, string>>;
  /** A text or buffer as it is; anything else as JSON. */
  readonly body?: unknown;
};

/** The response of the application, its body as it was sent. */
export interface WorkAnswer {
  readonly method: string;
  readonly path: string;
  readonly status: number;
  /** Length of the body as it was sent; uncompressed, unless `headers` has an `accept-encoding`. */
  readonly bytes: number;
  readonly body: Buffer;
}

export async function send(server: Server, given: WorkRequest, id: string): Promise<WorkAnswer> {
  const [method, path] = readMethod(given);
  const { headers = {}, body } = given;
  const isRaw = typeof body === 'string' || Buffer.isBuffer(body);
  const payload = body === undefined || isRaw ? body : JSON.stringify(body);
  const all: OutgoingHttpHeaders = {
    'accept-encoding': 'identity',
    ...(payload !== undefined && !isRaw && { 'content-type': 'application/json' }),
    ...(payload !== undefined && { 'content-length': Buffer.byteLength(payload) }),
    ...headers,
    'x-request-id': id,
    connection: 'close',
  };
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const make = server instanceof HttpsServer ? httpsRequest : httpRequest;
    const request = make({
      ...findAddress(server),
      method,
      path,
      headers: all,
      agent: false,
      rejectUnauthorized: false,
    });
    request.on('response', resolve).on('error', reject).end(payload);
  });
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  const sent = Buffer.concat(chunks);
  return { method, path, status: response.statusCode ?? 0, bytes: sent.byteLength, body: sent };
}

function readMethod(given: WorkRequest): [method: string, path: string] {
  const named = METHODS.filter((name) => given[name] !== undefined);
  const [name] = named;
  const path = name === undefined ? undefined : given[name];
  if (named.length !== 1 || typeof path !== 'string' || !path.startsWith('/'))
    throw optionError('expectWork() request', "one method with a path, as in `{ get: '/orders/7' }`", given);
  return [name!.toUpperCase(), path];
}

/** The loopback address where the server listens on all. */
function findAddress(server: Server): { host: string; port: number } | { socketPath: string } {
  const address = server.address();
  if (typeof address === 'string') return { socketPath: address };
  const { address: host, port } = address!;
  return { host: host === '::' || host === '0.0.0.0' ? 'localhost' : host, port };
}
