import { createServer, type Server } from 'node:http';
import { describe, expect, it } from 'vitest';
import { hearFirst } from '../../../src/http/server-request.js';

const emit = (server: Server): boolean => server.emit('request', 'request', 'response');

describe('who hears of a request', () => {
  it('comes before the framework, in one listener', () => {
    const order: unknown[] = [];
    const server = createServer(function (this: unknown, ...given: unknown[]) {
      order.push(this === server, ...given);
    });
    hearFirst(server, (...given) => void order.push('first', ...given));
    expect(server.listenerCount('request')).toBe(1);
    emit(server);
    expect(order).toEqual(['first', 'request', 'response', true, 'request', 'response']);
  });

  it('comes first where several others listen already, or later', () => {
    const order: string[] = [];
    const server = createServer(() => void order.push('framework'));
    server.on('request', () => void order.push('other'));
    hearFirst(server, () => void order.push('first'));
    server.on('request', () => void order.push('later'));
    emit(server);
    expect(order).toEqual(['first', 'framework', 'other', 'later']);
  });

  it('hears of them where nobody else does', () => {
    const server = createServer();
    let heard = 0;
    hearFirst(server, () => void (heard += 1));
    emit(server);
    expect(heard).toBe(1);
  });

  it("is called as often as a framework's own `once`", () => {
    let [heard, called] = [0, 0];
    const server = createServer();
    server.once('request', () => void (called += 1));
    hearFirst(server, () => void (heard += 1));
    emit(server);
    emit(server);
    expect([heard, called]).toEqual([2, 1]);
  });
});
