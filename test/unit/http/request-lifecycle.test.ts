import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { OncePerCause } from '../../../src/core/reporter.js';
import type { RequestState } from '../../../src/core/request-state.js';
import { RequestLifecycle } from '../../../src/http/request-lifecycle.js';
import { RouteRegistry } from '../../../src/http/route-registry.js';

/** The lifecycle of one application, and what it has heard of the ends of requests. */
function application(name: string, ended: string[], nowMs: () => number = () => 0): RequestLifecycle {
  const nothing = (): void => {};
  const report = new OncePerCause({ log: nothing, warn: nothing, error: nothing }, () => 0);
  const lifecycle = new RequestLifecycle(nowMs, new RouteRegistry(), report);
  lifecycle.observe({
    ended: ({ request, status, aborted }: RequestState) => {
      ended.push(`${name} ${request!.url} ${status} ${aborted ? 'aborted' : 'completed'}`);
    },
  });
  return lifecycle;
}

/** As a server makes them: its parser has read the request last. */
function requestOn(socket: Socket, url: string): ServerResponse {
  const request = new IncomingMessage(socket);
  request.url = url;
  Object.assign(socket, { parser: { incoming: request } });
  return new ServerResponse(request);
}

function startOn(socket: Socket, ...requests: [RequestLifecycle, string][]): void {
  for (const [lifecycle, url] of requests) {
    const response = requestOn(socket, url);
    lifecycle.start(response.req, response);
  }
}

describe('requests of one connection', () => {
  it('end when they leave it, and then not again', () => {
    const ended: string[] = [];
    const lifecycle = application('a', ended);
    const socket = new Socket();
    for (const url of ['/1', '/2']) {
      const response = requestOn(socket, url);
      response.assignSocket(socket);
      // An idle connection holds nothing of what it has served.
      expect(lifecycle.start(response.req, response).ahead).toBeNull();
      response.detachSocket(socket);
    }
    expect([socket.listenerCount('close'), lifecycle.inFlight]).toEqual([1, 0]);
    socket.emit('close');
    expect(ended).toEqual(['a /1 200 completed', 'a /2 200 completed']);
  });

  it('end with it, oldest first, whichever application they belong to', () => {
    const ended: string[] = [];
    const [a, b] = [application('a', ended), application('b', ended)];
    const socket = new Socket();
    startOn(socket, [a, '/1'], [b, '/2'], [a, '/3']);
    const other = requestOn(new Socket(), '/other');
    a.start(other.req, other);
    socket.emit('close');
    expect(ended).toEqual(['a /1 499 aborted', 'b /2 499 aborted', 'a /3 499 aborted']);
    expect([a.inFlight, b.inFlight]).toEqual([1, 0]);
  });

  it('are in flight until each has ended', () => {
    const seen: string[] = [];
    const [a, b] = [application('a', []), application('b', [])];
    for (const lifecycle of [a, b]) {
      lifecycle.observe({
        ended: ({ request }) => {
          const others = lifecycle.states().map((state) => state.request!.url);
          seen.push(`${request!.url} leaves ${others.join()}, ${lifecycle.inFlight}`);
        },
      });
    }
    const socket = new Socket();
    startOn(socket, [a, '/1'], [b, '/2'], [a, '/3'], [b, '/4']);
    socket.emit('close');
    expect(seen).toEqual(['/1 leaves /3, 1', '/2 leaves /4, 1', '/3 leaves , 0', '/4 leaves , 0']);
  });

  // A second server of the same application, behind a hook that waits: the parser has gone on to the next request.
  it('end with it when they were started late', () => {
    const ended: string[] = [];
    const lifecycle = application('a', ended);
    const socket = new Socket();
    const responses = ['/1', '/2', '/3'].map((url) => requestOn(socket, url));
    for (const response of responses) lifecycle.start(response.req, response);
    socket.emit('close');
    expect(ended).toEqual(['a /1 499 aborted', 'a /2 499 aborted', 'a /3 499 aborted']);
    expect(lifecycle.inFlight).toBe(0);
  });

  it('hold none of those before them, however many the client sends without waiting', () => {
    const lifecycle = application('a', []);
    const socket = new Socket();
    let served: ServerResponse | null = null;
    for (let i = 0; i < 5; i++) {
      const response = requestOn(socket, `/${i}`);
      const state = lifecycle.start(response.req, response);
      if (served !== null) {
        expect(state.ahead?.request).toBe(served.req);
        served.assignSocket(socket);
        served.detachSocket(socket);
        expect(state.ahead?.ahead).toBeNull();
      }
      served = response;
    }
  });

  it('are told by their response alone where somebody has made them without one', () => {
    const ended: string[] = [];
    const lifecycle = application('a', ended);
    const request = new IncomingMessage(undefined as unknown as Socket);
    request.url = '/made';
    const response = new ServerResponse(request);
    lifecycle.start(request, response);
    response.emit('finish');
    response.emit('close');
    expect(ended).toEqual(['a /made 200 completed']);
  });
});

describe('requests in flight', () => {
  const urlsOf = (lifecycle: RequestLifecycle): (string | undefined)[] =>
    lifecycle.states().map(({ request }) => request?.url);

  it('are those of all connections, and those without one, oldest first', () => {
    let nowMs = 0;
    const lifecycle = application('a', [], () => (nowMs += 1));
    const first = new Socket();
    const second = new Socket();
    const made = new IncomingMessage(undefined as unknown as Socket);
    made.url = '/made';
    const start = (response: ServerResponse) => lifecycle.start(response.req, response);
    start(requestOn(first, '/1'));
    start(new ServerResponse(made));
    const third = requestOn(second, '/3');
    start(third);
    start(requestOn(first, '/4'));
    const scope = lifecycle.begin();
    expect(urlsOf(lifecycle)).toEqual(['/1', '/made', '/3', '/4', undefined]);
    third.assignSocket(second);
    third.detachSocket(second);
    lifecycle.end(scope, 200, false);
    first.emit('close');
    expect(urlsOf(lifecycle)).toEqual(['/made']);
    expect(lifecycle.inFlight).toBe(1);
  });

  it('are told by each of two applications that share a connection', () => {
    const [a, b] = [application('a', []), application('b', [])];
    const socket = new Socket();
    startOn(socket, [a, '/1'], [b, '/2'], [a, '/3']);
    expect([urlsOf(a), urlsOf(b)]).toEqual([['/1', '/3'], ['/2']]);
    socket.emit('close');
    expect([urlsOf(a), urlsOf(b)]).toEqual([[], []]);
  });

  it('are waited for until those with an ended response have closed', async () => {
    const lifecycle = application('a', []);
    const response = requestOn(new Socket(), '/1');
    const open = requestOn(new Socket(), '/open');
    const state = lifecycle.start(response.req, response);
    lifecycle.start(open.req, open);
    response.end();
    let settled = false;
    const waiting = lifecycle.settled().then(() => (settled = true));
    await Promise.resolve();
    expect(settled).toBe(false);
    lifecycle.end(state, 200, false);
    await waiting;
    expect(lifecycle.inFlight).toBe(1);
  });
});

describe('an observer that paces itself', () => {
  it('hears of starts and ends from the time that it has set, before the others', () => {
    const heard: string[] = [];
    let nowMs = 0;
    const lifecycle = application('a', heard, () => nowMs);
    const paced = {
      dueMs: 10,
      started: ({ request }: RequestState) => void heard.push(`start ${request!.url}`),
      ended: ({ request }: RequestState) => void heard.push(`end ${request!.url}`),
    };
    lifecycle.observePaced(paced);
    const socket = new Socket();
    const serve = (url: string, endMs: number): void => {
      const response = requestOn(socket, url);
      lifecycle.start(response.req, response);
      nowMs = endMs;
      response.assignSocket(socket);
      response.detachSocket(socket);
    };
    serve('/early', 9);
    serve('/over', 10);
    serve('/due', 11);
    paced.dueMs = 100;
    serve('/later', 99);
    expect(heard).toEqual([
      'a /early 200 completed',
      'end /over',
      'a /over 200 completed',
      'start /due',
      'end /due',
      'a /due 200 completed',
      'a /later 200 completed',
    ]);
  });

  it('that fails costs neither the request nor the others anything', () => {
    const heard: string[] = [];
    const lifecycle = application('a', heard);
    const fail = (): never => {
      throw new Error('observer');
    };
    lifecycle.observePaced({ dueMs: 0, started: fail, ended: fail });
    const socket = new Socket();
    const response = requestOn(socket, '/1');
    lifecycle.start(response.req, response).deferred = { ended: fail };
    response.assignSocket(socket);
    response.detachSocket(socket);
    expect(heard).toEqual(['a /1 200 completed']);
  });
});
