import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { OncePerCause } from '../../../src/core/reporter.js';
import type { RequestState } from '../../../src/core/request-state.js';
import { RequestLifecycle } from '../../../src/http/lifecycle.js';
import { Routes } from '../../../src/core/route.js';

/** The lifecycle of one application, and what it has heard of the ends of requests. */
function application(name: string, ended: string[], warnings: string[] = []): RequestLifecycle {
  const warn = (message: string): void => void warnings.push(message);
  const report = new OncePerCause({ log: warn, warn, error: warn }, () => 0);
  const lifecycle = new RequestLifecycle(() => 0, new Routes(report), report);
  lifecycle.observe({
    ended: ({ request, status, aborted }: RequestState) => {
      ended.push(`${name} ${request!.url} ${status} ${aborted ? 'aborted' : 'completed'}`);
    },
  });
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

  it('ends with the last of the applications that it goes through, which share their listeners', () => {
    const ended: string[] = [];
    const response = responseOn(new Socket(), '/1');
    for (const name of ['a', 'b', 'c', 'd']) application(name, ended).start(response.req, response);
    const events = ['finish', 'close'];
    expect(events.map((event) => response.listenerCount(event))).toEqual([2, 2]);
    for (const event of events) response.emit(event);
    expect(ended).toEqual(['d /1 200 completed']);
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

  it('belongs to the innermost application that it reaches', () => {
    const ended: string[] = [];
    const [outer, inner] = [application('outer', ended), application('inner', ended)];
    const response = responseOn(new Socket(), '/1');
    outer.start(response.req, response);
    inner.start(response.req, response);
    expect([outer.inFlight, inner.inFlight]).toEqual([0, 1]);
    for (const event of ['finish', 'close']) response.emit(event);
    expect(ended).toEqual(['inner /1 200 completed']);
  });

  it('ends for everybody although an observer throws, and that is said once', () => {
    const [ended, warnings]: [string[], string[]] = [[], []];
    const nothing = (): never => {
      throw new Error('nobody counts');
    };
    const lifecycle = application('a', ended, warnings);
    lifecycle.observe({ started: nothing, ended: nothing });
    lifecycle.observe({ ended: ({ status }) => void ended.push(`then ${status}`) });
    for (const url of ['/1', '/2']) {
      const response = responseOn(new Socket(), url);
      lifecycle.start(response.req, response);
      response.emit('finish');
    }
    expect(ended).toEqual(['a /1 200 completed', 'then 200', 'a /2 200 completed', 'then 200']);
    expect(warnings).toEqual(['a request observer failed: nobody counts. Requests are not affected.']);
  });
});
