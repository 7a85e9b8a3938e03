import { expect, it } from 'vitest';
import { deferOption } from '../../../src/defer/defer.options.js';
import { MemoryPlace, MemoryStore } from '../contract/memory-store.js';

it('takes a store that serves 0.1.0 as well', () => {
  const store = Object.assign(new MemoryStore(new MemoryPlace(), false), { journal: { append() {} }, spill: null });
  expect(deferOption.read({ store }, 'defer')).toMatchObject({ store });
});
