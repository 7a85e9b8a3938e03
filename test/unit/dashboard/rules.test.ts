import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { rules, writeRules } from '../../../src/dashboard/top/rules.js';

const SLO = 'GET /orders p95 < 250ms 99.9%';

describe('`nestjs-perf rules`', () => {
  it('burns 5 % of slow and 0.1 % of failed requests over the windows of the workbook', () => {
    const text = writeRules([SLO]);
    expect(text.match(/- record: /g)).toHaveLength(14);
    expect(text.match(/- alert: /g)).toHaveLength(8);
    expect(text).toContain('http_request_method="GET", http_route="/orders", le="0.25"');
    expect(text).toContain('perf:slo_slow:ratio_rate1h{slo="GET /orders"} > 0.72 and');
    expect(text).toContain('perf:slo_failed:ratio_rate1h{slo="GET /orders"} > 0.0144 and');
    expect(text).not.toContain('no usual bound');
  });

  it('says which bucket the sink needs', () => {
    expect(writeRules(['GET /orders p95 < 300ms 99.9%'])).toContain('# 0.3 s is no usual bound: give it to the sink');
  });

  it('ends with 2 and the form where an objective is none', async () => {
    let [out, err] = ['', ''];
    const terminal = { write: (text: string) => void (out += text), complain: (text: string) => void (err += text) };
    expect(await rules(['--slo', 'fast please'], terminal)).toBe(2);
    expect(await rules([], terminal)).toBe(2);
    expect(err).toContain('reads \'GET /orders p95 < 300ms 99.9%\', got "fast please"');
    expect([await rules(['--slo', SLO], terminal), out]).toEqual([0, writeRules([SLO])]);
  });

  it('has written the rules in examples/kubernetes', () => {
    const [, spec] = readFileSync('examples/kubernetes/prometheus-rule.yaml', 'utf8').split('\nspec:\n');
    const written = spec!.replaceAll(/^ {2}/gm, '');
    expect(written).toBe(writeRules([SLO]));
  });
});
