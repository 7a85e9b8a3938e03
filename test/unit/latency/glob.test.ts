import { expect, it } from 'vitest';
import { compileGlob } from '../../../src/latency/glob.js';

it.each([
  ['/health', ['/health'], ['/health/live', '/healthy', '/api/health']],
  ['/internal/*', ['/internal/stats', '/internal/:id'], ['/internal', '/internal/a/b', '/internals/a']],
  ['/admin/**', ['/admin', '/admin/users', '/admin/users/:id'], ['/administration', '/api/admin']],
  ['/*/health', ['/v1/health', '/v2/health'], ['/health', '/v1/a/health']],
  ['/**/health', ['/health', '/v1/health', '/v1/a/health'], ['/v1/healthy']],
  ['/files/*path', ['/files/*path'], ['/files/a/path']],
  ['/a.b(c)+$', ['/a.b(c)+$'], ['/aXb(c)+$', '/a.bc']],
])('%s', (glob, matching, others) => {
  expect([...matching, ...others].filter((pattern) => compileGlob(glob).test(pattern))).toEqual(matching);
});
