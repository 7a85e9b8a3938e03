import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { OncePerCause } from '../../../src/core/reporter.js';
import type { RequestState } from '../../../src/request/request-state.js';
import { RequestTracker } from '../../../src/request/tracker.js';
import { Route, Routes } from '../../../src/request/routes.js';

/** The lifecycle of one application, whose pipeline notes the ends of requests. */
function application(name: string, ended: string[]): RequestTracker {
  const report = new OncePerCause({ log() {}, warn() {}, error() {} }, () => 0);
  const lifecycle = new RequestTracker(() => 1, new Routes(), report);
  const noteEnd = ({ request, status, aborted }: RequestState): void => {
    ended.push(`${name} ${request!.url} ${status} ${aborted ? 'aborted' : 'completed'}`);
  };
  lifecycle.pipeline = { started: [], ended: [noteEnd] };
  return lifecycle;
}

function responseOn(socket: Socket, url: string): ServerResponse {
  const request = new IncomingMessage(socket);
  request.url = url;
  return new ServerResponse(request);
}

describe('a request', () => {
  it('ends once, completed, when its response was handed over', () => {
    const ended: string[] = [];
    const lifecycle = application('a', ended);
    const response = responseOn(new Socket(), '/1');
    lifecycle.start(response.req, response);
    for (const event of ['finish', 'finish', 'close']) response.emit(event);
    expect(ended).toEqual(['a /1 200 completed']);
    expect(lifecycle.inFlight).toBe(0);
  });

  it('ends aborted when its response closes before', () => {
    const ended: string[] = [];
    const lifecycle = application('a', ended);
    const response = responseOn(new Socket(), '/1');
    lifecycle.start(response.req, response);
    response.emit('close');
    expect(ended).toEqual(['a /1 499 aborted']);
  });

  it('has one pair of listeners, however many applications it goes through', () => {
    const ended: string[] = [];
    const response = responseOn(new Socket(), '/1');
    for (const name of ['a', 'b', 'c', 'd']) application(name, ended).start(response.req, response);
    const events = ['finish', 'close'];
    expect(events.map((event) => response.listenerCount(event))).toEqual([1, 1]);
    for (const event of events) response.emit(event);
    expect(ended).toEqual(['a /1 200 completed']);
  });

  it('that waits behind others ends with their connection, whichever application it belongs to', () => {
    const ended: string[] = [];
    const [a, b] = [application('a', ended), application('b', ended)];
    const socket = new Socket();
    const responses = ['/1', '/2', '/3'].map((url) => responseOn(socket, url));
    responses[0]!.assignSocket(socket);
    for (const [i, lifecycle] of [a, b, a].entries()) lifecycle.start(responses[i]!.req, responses[i]!);
    responses[0]!.emit('finish');
    socket.emit('close');
    expect(ended).toEqual(['a /1 200 completed', 'b /2 499 aborted', 'a /3 499 aborted']);
    expect([a.inFlight, b.inFlight]).toEqual([0, 0]);
  });

  it('belongs to the application whose route it reaches', () => {
    const ended: string[] = [];
    const [outer, inner] = [application('outer', ended), application('inner', ended)];
    const response = responseOn(new Socket(), '/1');
    outer.start(response.req, response);
    const state = inner.start(response.req, response);
    expect([outer.inFlight, inner.inFlight]).toEqual([1, 0]);
    inner.triggered(state, new Route('GET', '/:id', null, () => {}));
    expect([outer.inFlight, inner.inFlight]).toEqual([0, 1]);
    for (const event of ['finish', 'close']) response.emit(event);
    expect(ended).toEqual(['inner /1 200 completed']);
    expect([outer.inFlight, inner.inFlight]).toEqual([0, 0]);
  });

  it('has no first byte where its head is written after its end', () => {
    const response = responseOn(new Socket(), '/1');
    const state = application('a', []).start(response.req, response);
    response.emit('close');
    response.writeHead(200);
    expect([state.closed, state.firstByteMs]).toEqual([true, 0]);
  });
});
