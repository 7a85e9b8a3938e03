import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { OncePerCause } from '../../../src/core/reporter.js';
import type { RequestState } from '../../../src/core/request-state.js';
import { RequestLifecycle } from '../../../src/http/request-lifecycle.js';
import { RouteRegistry } from '../../../src/http/route-registry.js';

/** The lifecycle of one application, and what it has heard of the ends of requests. */
function application(name: string, ended: string[]): RequestLifecycle {
  const nothing = (): void => {};
  const report = new OncePerCause({ log: nothing, warn: nothing, error: nothing }, () => 0);
  const lifecycle = new RequestLifecycle(() => 0, new RouteRegistry(), report);
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
    for (const [lifecycle, url] of [
      [a, '/1'],
      [b, '/2'],
      [a, '/3'],
    ] as const) {
      const response = requestOn(socket, url);
      lifecycle.start(response.req, response);
    }
    const other = requestOn(new Socket(), '/other');
    a.start(other.req, other);
    socket.emit('close');
    expect(ended).toEqual(['a /1 499 aborted', 'b /2 499 aborted', 'a /3 499 aborted']);
    expect([a.inFlight, b.inFlight]).toEqual([1, 0]);
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
