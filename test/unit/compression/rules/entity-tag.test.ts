import { describe, expect, it } from 'vitest';
import { makeTag } from '../../../../src/compression/content-cache.js';
import {
  namesTag,
  restoreTags,
  tagRepresentation,
  translateConditions,
} from '../../../../src/compression/rules/entity-tag.js';

describe('entity tags', () => {
  it('are strong, the same for one content and different for every representation', () => {
    const tag = makeTag('{"a":1}');
    expect(tag).toMatch(/^"7-[\da-z]+"$/);
    for (const body of ['{"a":1}', '{"city":"Zürich"}']) expect(makeTag(Buffer.from(body))).toBe(makeTag(body));
    expect(makeTag('{"a":2}')).not.toBe(tag);
    const tags = [tag, tagRepresentation(tag, 'br'), tagRepresentation(tag, 'gzip')];
    expect(tags[1]).toMatch(/^W\/"7-[\da-z]+;;br"$/);
    expect(new Set(tags).size).toBe(3);
  });

  it('become again what they were', () => {
    for (const tag of ['"v7"', 'W/"v7"', '""', '"a;b"', 'W/"a;br"']) {
      for (const coding of ['zstd', 'br', 'gzip', 'deflate'] as const) {
        const given = tagRepresentation(tag, coding);
        expect([given.startsWith('W/'), restoreTags(given, null)]).toEqual([true, tag]);
      }
    }
    expect(restoreTags('W/"a;;br", "b", W/"c;gzip"', null)).toBe('"a", "b", W/"c"');
    expect(restoreTags('W/"a;;br", W/"c;gzip"', 'gzip')).toBe('W/"a;;br", W/"c"');
  });

  it("of two lines of one header become the application's, and the client's stay known", () => {
    const given = ['W/"a;;br"', 'W/"b;;br"'];
    const request = {
      rawHeaders: given.flatMap((tag) => ['If-None-Match', tag]),
      headers: { 'if-none-match': given.join(', ') },
    };
    expect(translateConditions(request as never, () => 'br')).toBe(given.join(', '));
    expect(request.headers['if-none-match']).toBe('"a", "b"');
  });

  it('match weakly, but never across codings or contents', () => {
    expect(namesTag('W/"a;br"', '"a;br"')).toBe(true);
    expect(namesTag('"x", "a;br"', 'W/"a;br"')).toBe(true);
    expect(namesTag('"a;gzip"', '"a;br"')).toBe(false);
    expect(namesTag('"a"', '"a;br"')).toBe(false);
    expect(namesTag('"b;br"', '"a;br"')).toBe(false);
    expect(namesTag('*', '"a"')).toBe(true);
    expect(namesTag('nonsense', '"a"')).toBe(false);
  });
});
