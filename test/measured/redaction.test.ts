import { describe, expect, it } from 'vitest';
import { redactUrl } from '../../src/core/redact-url.js';
import { redactData } from '../../src/core/redact.js';
import { SecretNames } from '../../src/core/secret-names.js';

const secrets = new SecretNames([]);

/** The least CPU time of twenty runs, in milliseconds. */
function leastCpuMs(run: () => void): number {
  const runs = Array.from({ length: 20 }, () => {
    const before = process.cpuUsage();
    run();
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1_000;
  });
  return Math.min(...runs);
}

/** JSON texts in JSON texts, the innermost encoded over and over. */
function nestTexts(levels: number): string {
  let text = `%${'25'.repeat(60)}41`;
  for (let level = 0; level < levels; level++) text = JSON.stringify([text]);
  return text;
}

const CONTROL = JSON.stringify(Array.from({ length: 10_000 }, (_, i) => ({ id: i, name: `item ${i}` })));

describe('the time that redaction takes is bounded', () => {
  it.each<[string, () => void]>([
    ['JSON in JSON, and encodings of encodings', () => redactUrl(`/x?q=${nestTexts(9)}`, { pattern: '/x' }, secrets)],
    ['beginnings of tokens', () => redactUrl(`/x?q=${'eyJ'.repeat(5_000)}`, { pattern: '/x' }, secrets)],
    ['colons', () => redactUrl(`/x?q=${':'.repeat(16_000)}`, { pattern: '/x' }, secrets)],
    ['names', () => redactUrl(`/x?q=${'a='.repeat(8_000)}`, { pattern: '/x' }, secrets)],
    ['parameters', () => redactUrl(`/x?${'a=1&'.repeat(4_000)}`, { pattern: '/x' }, secrets)],
    ['segments', () => redactUrl('/a'.repeat(8_000), { pattern: '/x' }, secrets)],
    ['texts in texts of a body', () => redactData({ text: nestTexts(9) }, secrets)],
  ])('whatever a client sends: %s', (_what, redact) => {
    // The control parses half a megabyte of JSON: 2 to 4 ms on an idle core of 2024.
    const controlMs = leastCpuMs(() => JSON.parse(CONTROL));
    expect(leastCpuMs(redact) / controlMs).toBeLessThan(8);
  });

  it('reads a long value once, however long it is', () => {
    const costMs = (length: number): number => {
      const url = `/search?q=${'x y '.repeat(length / 8)}${'x'.repeat(length / 2)}`;
      return leastCpuMs(() => {
        for (let i = 0; i < 20; i++) redactUrl(url, { pattern: null }, secrets);
      });
    };
    // Quadratic reading would cost a thousand times as much.
    expect(costMs(64_000)).toBeLessThan(300 * Math.max(costMs(2_000), 0.05));
  });
});
