// The mixed load of the soak, from the process that judges it: what was sent, and what came back, by route.
import { Agent, request as send } from 'node:http';
import { connect } from 'node:net';

const JSON_TYPE = { 'content-type': 'application/json' };

/** One kind of request in so many; `route` is what the server must have counted it under. */
const KINDS = [
  {
    weight: 400,
    route: 'GET /users/:id',
    make: (n) => ({ path: `/users/${n % 500}`, headers: { 'x-user': `u${n % 500}` } }),
  },
  {
    weight: 100,
    route: 'POST /orders',
    make: (n) => ({ method: 'POST', path: '/orders', headers: JSON_TYPE, body: `{"n":${n}}` }),
  },
  { weight: 100, route: 'GET /feed', make: () => ({ path: '/feed', headers: { 'accept-encoding': 'br, gzip' } }) },
  { weight: 60, route: 'GET /waits', make: () => ({ path: '/waits', abortAfterMs: 40 }) },
  { weight: 20, route: 'GET /download', make: () => ({ path: '/download', slowly: true }) },
  { weight: 20, route: 'GET /download', make: () => ({ path: '/download', abortInBody: true }) },
  { weight: 40, route: 'GET /fails', make: () => ({ path: '/fails' }) },
  { weight: 60, route: 'GET ', make: (n) => ({ path: `/no/such/${n}` }) },
  {
    weight: 20,
    route: 'POST /orders',
    make: () => ({ method: 'POST', path: '/orders', headers: JSON_TYPE, body: '{"n":' }),
  },
  { weight: 2, route: 'GET /block', make: () => ({ path: '/block' }) },
];
const WHEEL = KINDS.flatMap(({ weight }, kind) => Array.from({ length: weight }, () => kind));

const newAgent = () => new Agent({ keepAlive: true, maxSockets: 32 });

export class Traffic {
  /** Route -> { sent, aborted, statuses: { 200: 7 } }: what this client knows for sure. `aborted` are those it gave up. */
  counts = {};
  /** Numbers of the orders that were answered with 201. */
  accepted = [];
  errors = {};
  #port;
  #perSecond;
  #timer = null;
  #due = 0;
  #number = 0;
  #inFlight = new Set();
  #agent = newAgent();

  constructor(port, perSecond) {
    this.#port = port;
    this.#perSecond = perSecond;
    for (const { route } of KINDS) this.counts[route] = { sent: 0, aborted: 0, statuses: {} };
  }

  start() {
    if (this.#timer !== null) return;
    const everyMs = 20;
    this.#timer = setInterval(() => {
      this.#due += (this.#perSecond * everyMs) / 1000;
      for (; this.#due >= 1; this.#due -= 1) this.#one();
    }, everyMs);
  }

  /** Resolves when every request that was sent has ended on this side and no connection is left: they are no leak. */
  async stop() {
    clearInterval(this.#timer);
    this.#timer = null;
    this.#due = 0;
    await Promise.all(this.#inFlight);
    this.#agent.destroy();
    this.#agent = newAgent();
  }

  #one() {
    const n = this.#number++;
    const { route, make } = KINDS[WHEEL[Math.floor(Math.random() * WHEEL.length)]];
    const count = this.counts[route];
    count.sent += 1;
    const ended = this.#send(make(n))
      .then((status) => {
        if (status === null) count.aborted += 1;
        else count.statuses[status] = (count.statuses[status] ?? 0) + 1;
        if (status === 201) this.accepted.push(n);
      })
      .catch((error) => {
        const cause = `${route}: ${error.code ?? error.message}`;
        this.errors[cause] = (this.errors[cause] ?? 0) + 1;
      })
      .finally(() => this.#inFlight.delete(ended));
    this.#inFlight.add(ended);
  }

  /** Resolves with the status, or null when this side gave up. */
  #send({ method = 'GET', path, headers = {}, body, abortAfterMs, abortInBody, slowly }) {
    if (abortAfterMs !== undefined) return this.#giveUp(path, abortAfterMs);
    return new Promise((resolve, reject) => {
      const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) };
      const agent = abortInBody ? false : this.#agent;
      const request = send(
        { host: '127.0.0.1', port: this.#port, agent, method, path, headers: { ...headers, ...length } },
        (response) => {
          response.on('error', reject);
          response.on('end', () => resolve(response.statusCode));
          if (abortInBody) {
            response.removeAllListeners('error').on('error', () => {});
            response.once('data', () => {
              request.destroy();
              resolve(null);
            });
          } else if (slowly) readSlowly(response);
          else response.resume();
        },
      );
      request.on('error', reject);
      request.end(body);
    });
  }

  /** Leaves before the answer, on a connection of its own. The request has been sent whole, so the server has seen it. */
  #giveUp(path, afterMs) {
    return new Promise((resolve, reject) => {
      const socket = connect(this.#port, '127.0.0.1', () => {
        socket.write(`GET ${path} HTTP/1.1\r\nhost: soak\r\n\r\n`);
        setTimeout(() => socket.destroy(), afterMs);
      });
      socket.on('error', reject);
      socket.on('close', () => resolve(null));
    });
  }
}

/** A client on a bad line: a chunk, a pause, a chunk. */
function readSlowly(response) {
  response.on('data', () => {
    response.pause();
    setTimeout(() => response.resume(), 15);
  });
}
