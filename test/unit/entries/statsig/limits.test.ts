import { describe, expect, it } from 'vitest';
import { label, MAX_STRING, buildMetadata, limitUser } from '../../../../src/entries/statsig/limits.js';

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

  it('adds a key for each variant, none in the place of its own', () => {
    const own = { route: '/x', count: 1 };
    expect(buildMetadata(own, { lean: 'on', route: 'off' })).toEqual({ ...own, lean: 'on' });
  });
});
