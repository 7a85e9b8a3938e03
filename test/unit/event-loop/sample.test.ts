import { describe, expect, it } from 'vitest';
import { isApplicationFrame, isCalledBySharedHandle, isIdle } from '../../../src/event-loop/sample.js';
import { called, frame, ofSocket, resumed, sample } from '../../fixtures/samples.js';

it.each([
  [[], false, true],
  [called, false, false],
  // It could not be read.
  [[], true, false],
])('%#: a sample is of an idle loop where it has no frames and is whole', (frames, cut, expected) => {
  expect(isIdle(sample(null, 1, { frames, cut }))).toBe(expected);
});

describe('a frame is the application’s', () => {
  it.each([
    ['/app/src/x.js', true],
    ['file:///app/src/x.mjs', true],
    ['C:\\app\\src\\x.js', true],
    ['node:fs', false],
    ['wasm://wasm/0155631e', false],
    ['evalmachine.<anonymous>', false],
    ['/app/node_modules/lib/x.js', false],
    ['C:\\app\\node_modules\\lib\\x.js', false],
    ['/perf/x.js', false],
    ['', false],
    [null, false],
  ])('%s: %s', (file, expected) => {
    expect(isApplicationFrame(frame('x', file), '/perf/')).toBe(expected);
  });
});

describe('code that a shared handle has called', () => {
  const below = (...files: string[]) => [frame('own'), ...files.map((file) => frame('x', file))];
  it.each([
    ['a pool’s socket', ofSocket, true],
    ['a worker’s message', below('node:events', 'node:internal/per_context/messageport'), true],
    ['a child process', below('node:events', 'node:internal/child_process'), true],
    ['a datagram', below('node:events', 'node:dgram'), true],
    ['a promise', resumed, false],
    ['a promise, nothing else on the stack', below(), false],
    ['a timer', below('node:internal/timers'), false],
    ['the HTTP server, on a socket', below('node:_http_server', 'node:internal/stream_base_commons'), false],
    ['a callback that was bound to its request', below('node:async_hooks', 'node:internal/stream_base_commons'), false],
    ['a synchronous call of Node’s above it', [frame('spawnSync', 'node:internal/child_process'), frame('own')], false],
    [
      'a socket that waits for it',
      [frame('own'), frame('x', 'node:internal/stream_base_commons', { async: true })],
      false,
    ],
  ])('%s', (_what, frames, expected) => {
    expect(isCalledBySharedHandle({ frames })).toBe(expected);
  });
});
