import { EventEmitter } from 'node:events';
import { expect, it } from 'vitest';
import { listenShared } from '../../../src/core/shared-listener.js';
import { watchKnex } from '../../../src/upstream/watch/knex.js';
import { watchMongo } from '../../../src/upstream/watch/mongodb.js';
import { watchPgPool } from '../../../src/upstream/watch/pg.js';

const listenersOf = (emitter: EventEmitter) => emitter.eventNames().map((event) => emitter.listeners(event).length);

it('tells each listener of an event, through one listener of the emitter, which goes with the last', () => {
  const emitter = new EventEmitter();
  const told: string[] = [];
  const stops = ['first', 'second'].map((name) =>
    listenShared(emitter, 'event', (what: string) => void told.push(`${name} ${what}`)),
  );
  emitter.emit('event', 1);
  expect(told.splice(0)).toEqual(['first 1', 'second 1']);
  expect(listenersOf(emitter)).toEqual([1]);
  stops[0]!();
  stops[0]!();
  emitter.emit('event', 2);
  expect(told.splice(0)).toEqual(['second 2']);
  stops[1]!();
  expect(listenersOf(emitter)).toEqual([]);
});

it('is there for who comes after somebody has removed all listeners, and may stand before those of others', () => {
  const emitter = new EventEmitter();
  const told: string[] = [];
  listenShared(emitter, 'event', () => void told.push('first'));
  emitter.removeAllListeners();
  emitter.on('event', () => void told.push('other'));
  listenShared(emitter, 'event', () => void told.push('second'), 'prependListener');
  emitter.emit('event');
  expect(told).toEqual(['second', 'other']);
});

it.each([undefined, () => undefined, () => ['no function'], 'no function'])(
  'takes an emitter whose `listeners` is %s',
  (listeners) => {
    const emitter = Object.assign(new EventEmitter(), { listeners: listeners as never });
    const told: string[] = [];
    const stops = ['first', 'second'].map((name) => listenShared(emitter, 'event', () => void told.push(name)));
    emitter.emit('event');
    for (const stop of stops) stop();
    emitter.emit('event');
    expect(told).toEqual(['first', 'second']);
  },
);

class Client extends EventEmitter {
  readonly totalCount = 0;
  readonly options = { monitorCommands: true };
  query() {}
  connect() {}
  db() {}
  startSession() {}
  sendCommand() {}
  nodes = () => [];
}
const knexOf = (emitter: EventEmitter) =>
  Object.assign(() => {}, {
    raw: () => {},
    transaction: () => {},
    listeners: emitter.listeners.bind(emitter),
    on: emitter.on.bind(emitter),
    off: emitter.off.bind(emitter),
    client: {},
  });
const upstream = { begin: () => null, addPool: () => () => null } as never;
const findTarget = () => ({}) as never;

it.each([
  ['a pg pool', () => new Client(), (client: object) => watchPgPool(client, upstream, findTarget)],
  ['a MongoClient', () => new Client(), (client: object) => watchMongo(client, upstream, findTarget)],
  ['knex', knexOf, (client: object) => watchKnex(client, upstream, findTarget)],
])('%s that two applications hear has one listener an event, and none when they have closed', (_name, make, hear) => {
  const events = new EventEmitter();
  const client = make(events);
  const emitter = client instanceof EventEmitter ? client : events;
  const stops = [hear(client), hear(client)];
  expect(new Set(listenersOf(emitter))).toEqual(new Set([1]));
  for (const stop of stops) stop!();
  expect(listenersOf(emitter)).toEqual([]);
});
