import { EventEmitter } from 'node:events';
import { expect, it } from 'vitest';
import { watchKnex } from '../../../src/upstream/watch/knex.js';

it("a knex builder's queries end in the order in which they began, each once, with how they ended", () => {
  const events = new EventEmitter();
  const client = { dialect: 'postgresql', config: { connection: { host: 'db', database: 'shop' } } };
  const methods = { raw: () => {}, transaction: () => {}, on: events.on.bind(events), off: events.off.bind(events) };
  const knex = Object.assign(() => {}, methods, { client });
  const heard: string[] = [];
  const begin = ({ what }: { what?: string }) => {
    heard.push(`begin ${what}`);
    return (failed: boolean) => heard.push(`${failed ? 'failed' : 'end'} ${what}`);
  };
  watchKnex(knex, { begin } as never);
  const builder = new EventEmitter();
  for (let awaited = 1; awaited <= 2; awaited++) {
    events.emit('start', builder);
    builder.emit('query', { sql: `select ${awaited}` });
  }
  builder.emit('query-response', [], {}, builder);
  builder.emit('query-error', new Error('no'), {});
  builder.emit('query-error', new Error('no'), {});
  expect(heard).toEqual(['begin select 1', 'begin select 2', 'end select 1', 'failed select 2']);
});
