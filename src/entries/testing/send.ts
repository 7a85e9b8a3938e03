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

/** A handler that never answers fails with a message, in place of the test runner's timeout where that is longer. */
const ANSWER_DEADLINE_MS = 30_000;

/** @throws PERF_ERR_OPTION, and an error where the whole answer is not there in time */
export async function send(
  server: Server,
  given: WorkRequest,
  id: string,
  deadlineMs = ANSWER_DEADLINE_MS,
): Promise<WorkAnswer> {
  const [method, path] = readMethod(given);
  const signal = AbortSignal.timeout(deadlineMs);
  try {
    return await receive(server, given, id, { method, path, signal });
  } catch (error) {
    if (!signal.aborted) throw error;
    const text = `expectWork(): ${method} ${path} was not answered to its end within ${deadlineMs / 1_000} s.`;
    throw new Error(text, { cause: error });
  }
}

async function receive(
  server: Server,
  given: WorkRequest,
  id: string,
  { method, path, signal }: { readonly method: string; readonly path: string; readonly signal: AbortSignal },
): Promise<WorkAnswer> {
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
      signal,
    });
    request.on('response', resolve).on('error', reject).end(payload);
  });
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  const sent = Buffer.concat(chunks);
  return { method, path, status: response.statusCode ?? 0, bytes: sent.byteLength, body: sent };
}

const KEYS: readonly string[] = [...METHODS, 'headers', 'body'];

function readMethod(given: WorkRequest): [method: string, path: string] {
  const unknown = Object.keys(given ?? {}).find((key) => !KEYS.includes(key));
  if (unknown !== undefined)
    throw optionError('expectWork() request', `an object of ${KEYS.join(', ')}`, given, `\`${unknown}\` is none.`);
  const named = METHODS.filter((name) => given?.[name] !== undefined);
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
