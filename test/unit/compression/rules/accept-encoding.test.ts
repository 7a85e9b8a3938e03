import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { negotiate, parseAcceptEncoding } from '../../../../src/compression/rules/accept-encoding.js';
import type { ContentCoding } from '../../../../src/compression/rules/accept-encoding.js';
import { acceptEncodingCases } from '../../../fixtures/accept-encoding-cases.js';

const all: readonly ContentCoding[] = ['zstd', 'br', 'gzip', 'deflate'];
const withoutZstd: readonly ContentCoding[] = ['br', 'gzip', 'deflate'];

describe('negotiation by Accept-Encoding', () => {
  it.each(acceptEncodingCases)('$header gives $withZstd, and $without without zstd', ({ header, ...wanted }) => {
    expect(negotiate(header, all)).toBe(wanted.withZstd);
    expect(negotiate(header, withoutZstd)).toBe(wanted.without);
  });

  it("follows the server's order among codings that the client likes equally", () => {
    expect(negotiate('zstd, br, gzip', ['gzip', 'zstd'])).toBe('gzip');
  });

  it('leaves out a member whose weight is malformed: it may have been a refusal', () => {
    expect(negotiate('gzip;q =0', all)).toBeNull();
    expect(negotiate('gzip;q = 0, br', all)).toBe('br');
  });

  it('never chooses what the client refused or the server does not offer', () => {
    const member = fc
      .tuple(
        fc.constantFrom('gzip', 'br', 'zstd', 'deflate', 'identity', '*', 'x-gzip', 'GZIP', 'exi', ''),
        fc.constantFrom('', ';q=0', ';q=0.0', ';q=0.3', ';Q=1', ';q=2', ';q=', '; q=0.7', ';a=b;q=0.1'),
      )
      .map((parts) => parts.join(''));
    fc.assert(
      fc.property(fc.array(member, { maxLength: 6 }), fc.shuffledSubarray([...all]), (members, offered) => {
        const header = members.join(', ');
        const chosen = negotiate(header, offered);
        if (chosen === null) return;
        const weights = parseAcceptEncoding(header);
        expect(offered).toContain(chosen);
        expect(weights.get(chosen) ?? weights.get('*') ?? 0).toBeGreaterThan(0);
        expect(weights.get(chosen) ?? weights.get('*')).toBeGreaterThanOrEqual(weights.get('identity') ?? 0);
      }),
    );
  });

  it('never throws and never weighs outside 0 to 1, whatever the header', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary-ascii' }), (header) => {
        for (const weight of parseAcceptEncoding(header).values()) {
          expect(weight).toBeGreaterThanOrEqual(0);
          expect(weight).toBeLessThanOrEqual(1);
        }
      }),
    );
  });
});
