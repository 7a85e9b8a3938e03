import { describe, expect, it } from 'vitest';
import { contentTag } from '../../../../src/compression/cache/content-cache.js';
import { isExpressTag, namesTag, representationTag, weakened } from '../../../../src/compression/rules/entity-tag.js';

describe('entity tags', () => {
  it('are strong, the same for one content and different for every representation', () => {
    const tag = contentTag('{"a":1}');
    expect(tag).toMatch(/^"[\w-]{27}"$/);
    expect(contentTag(Buffer.from('{"a":1}'))).toBe(tag);
    expect(contentTag('{"a":2}')).not.toBe(tag);
    const tags = [tag, representationTag(tag, 'br'), representationTag(tag, 'gzip')];
    expect(tags[1]).toMatch(/^W\/"[\w-]{27};br"$/);
    expect(new Set(tags).size).toBe(3);
  });

  it('recognise the one that Express makes of a body, and no other', () => {
    expect(isExpressTag('W/"d-YTRW3ywCZAixXFrAHeFTY0y1nYg"', new Uint8Array(13))).toBe(true);
    expect(isExpressTag('W/"d-YTRW3ywCZAixXFrAHeFTY0y1nYg"', new Uint8Array(14))).toBe(false);
    expect(isExpressTag('"d-YTRW3ywCZAixXFrAHeFTY0y1nYg"', new Uint8Array(13))).toBe(false);
    expect(isExpressTag('W/"13-18f3c"', new Uint8Array(19))).toBe(false);
  });

  it('match weakly, but never across codings or contents', () => {
    expect(namesTag('W/"a;br"', '"a;br"')).toBe(true);
    expect(namesTag('"x", "a;br"', 'W/"a;br"')).toBe(true);
    expect(namesTag('"a;gzip"', '"a;br"')).toBe(false);
    expect(namesTag('"a"', '"a;br"')).toBe(false);
    expect(namesTag('"b;br"', '"a;br"')).toBe(false);
    expect(namesTag('*', '"a"')).toBe(true);
    expect(namesTag('nonsense', '"a"')).toBe(false);
    expect(weakened(weakened('"a"'))).toBe('W/"a"');
  });
});
