import { describe, expect, it } from 'vitest';
import {
  contentTag,
  isExpressTag,
  matchingTag,
  representationTag,
  weakened,
} from '../../../../src/compression/rules/entity-tag.js';

describe('entity tags', () => {
  it('are strong, the same for one content and different for every representation', () => {
    const tag = contentTag('{"a":1}');
    expect(tag).toMatch(/^"[\w-]{27}"$/);
    expect(contentTag(Buffer.from('{"a":1}'))).toBe(tag);
    expect(contentTag('{"a":2}')).not.toBe(tag);
    const tags = [
      tag,
      representationTag(tag, 'br', 4),
      representationTag(tag, 'br', 5),
      representationTag(tag, 'gzip', 5),
    ];
    expect(new Set(tags).size).toBe(4);
  });

  it('recognise the one that Express makes of a body, and no other', () => {
    expect(isExpressTag('W/"d-YTRW3ywCZAixXFrAHeFTY0y1nYg"', new Uint8Array(13))).toBe(true);
    expect(isExpressTag('W/"d-YTRW3ywCZAixXFrAHeFTY0y1nYg"', new Uint8Array(14))).toBe(false);
    expect(isExpressTag('"d-YTRW3ywCZAixXFrAHeFTY0y1nYg"', new Uint8Array(13))).toBe(false);
    expect(isExpressTag('W/"13-18f3c"', new Uint8Array(19))).toBe(false);
  });

  it('match weakly, across levels, but never across codings or contents', () => {
    expect(matchingTag('"a;br-4"', '"a;br-5"')).toBe('"a;br-4"');
    expect(matchingTag('"x", W/"a;br-4"', '"a;br-4"')).toBe('W/"a;br-4"');
    expect(matchingTag('"a;gzip-6"', '"a;br-5"')).toBeNull();
    expect(matchingTag('"a"', '"a;br-5"')).toBeNull();
    expect(matchingTag('"b;br-5"', '"a;br-5"')).toBeNull();
    expect(matchingTag('*', '"a"')).toBe('"a"');
    expect(matchingTag('nonsense', '"a"')).toBeNull();
    expect(weakened(weakened('"a"'))).toBe('W/"a"');
  });
});
