import { describe, expect, it } from 'vitest';
import { RouteCompression } from '../../../src/compression/route-compression.js';

/** How many of `count` responses may use the cache; every `nth` finds its body there, if it looks. */
function admitted(count: number, nth = Infinity): number {
  const route = new RouteCompression();
  let looked = 0;
  for (let i = 1; i <= count; i++) {
    if (!route.mayRepeat()) continue;
    looked += 1;
    if (i % nth === 0) route.repeats();
  }
  return looked;
}

describe('a route', () => {
  it('whose bodies never repeat passes the cache by after 16 responses, and is tried again after 256 more', () => {
    expect(admitted(16 + 256)).toBe(16);
    expect(admitted(16 + 256 + 16)).toBe(32);
  });

  it('whose bodies come again keeps using the cache', () => {
    expect(admitted(1_000, 16)).toBe(1_000);
  });
});
