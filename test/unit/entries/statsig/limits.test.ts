import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { label, MAX_OBJECT, MAX_STRING, buildMetadata, limitUser } from '../../../../src/entries/statsig/limits.js';

const sizeOf = (object: object): number =>
  Object.entries(object).reduce((sum, [key, value]) => sum + key.length + String(value).length, 0);

describe("Statsig's limits", () => {
  it('leaves what fits as it is', () => {
    const longest = 'x'.repeat(MAX_STRING);
    expect(label(longest)).toBe(longest);
    expect(limitUser({ userId: longest })).toEqual({ userID: longest });
  });

  it('keeps long routes that begin alike apart', () => {
    const route = (end: string): string =>
      label(`/organisations/:organisationId/projects/:projectId/environments/${end}`);
    expect(route('a')).toHaveLength(MAX_STRING);
    expect(route('a')).not.toBe(route('b'));
    expect(route('a')).toBe(route('a'));
  });

  it('cuts ids where the service does, so that they join with its exposures', () => {
    const userId = 'u'.repeat(200);
    expect(limitUser({ userId, customIds: { company: userId } })).toEqual({
      userID: userId.slice(0, 64),
      customIDs: { company: userId.slice(0, 64) },
    });
  });

  it('never passes the size of an object, whatever is given', () => {
    const bag = fc.dictionary(fc.string({ maxLength: 200 }), fc.string({ maxLength: 200 }), { maxKeys: 100 });
    fc.assert(
      fc.property(bag, (entries) => {
        const own = { route: '/x', count: 1 };
        const metadata = buildMetadata(own, entries);
        expect(metadata).toMatchObject(own);
        expect(sizeOf(metadata)).toBeLessThanOrEqual(MAX_OBJECT);
        expect(sizeOf(limitUser({ userId: 'u', customIds: entries }).customIDs ?? {})).toBeLessThanOrEqual(MAX_OBJECT);
      }),
      { numRuns: 50 },
    );
    const many = Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`gate_${i}`, 'on']));
    const metadata = buildMetadata({ route: '/x' }, many);
    expect(sizeOf(metadata)).toBeLessThanOrEqual(MAX_OBJECT);
    expect(Object.keys(metadata).length).toBeGreaterThan(300);
  });
});
