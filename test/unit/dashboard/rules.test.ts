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
    expect(text).toContain('perf:slo_slow:ratio_rate1h{slo="GET /orders p95 < 250ms"} > 0.72 and');
    expect(text).toContain('perf:slo_failed:ratio_rate1h{slo="GET /orders 99.9%"} > 0.0144 and');
    expect(text).toContain("slo: 'GET /orders 99.9%', window: 3d");
    expect(text).toContain('answered with 5xx use up the budget of 30 days');
    expect(text.startsWith('groups:')).toBe(true);
  });

  it('says which buckets the sink needs, in the file and on stderr', async () => {
    const args = ['--slo', 'GET /orders p95 < 300ms 99.9%', '--slo', 'GET /users p99 < 2s 99%', '--slo', SLO];
    let [out, err] = ['', ''];
    const terminal = { write: (text: string) => void (out += text), complain: (text: string) => void (err += text) };
    expect(await rules(args, terminal)).toBe(0);
    expect(err).toBe(
      'Without a bucket that ends at 0.3 s, 2 s SloTooSlow never fires: prometheusSink({ buckets: ' +
        '[0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.3, 0.5, 0.75, 1, 2, 2.5, 5, 7.5, 10] })\n',
    );
    expect(out.startsWith(`# ${err}groups:\n`)).toBe(true);
  });

  it('has a group and a label for each objective of one route, and the failures of both once', () => {
    const text = writeRules([
      'GET /orders p95 < 250ms 99.9%',
      'GET /orders p99 <  1s 99.9%',
      'GET /orders p90 < 0.5s 99%',
    ]);
    expect(text.match(/^ {2}- name: .+$/gm)).toEqual([
      "  - name: 'slo GET /orders p95 < 250ms'",
      "  - name: 'slo GET /orders 99.9%'",
      "  - name: 'slo GET /orders p99 < 1000ms'",
      "  - name: 'slo GET /orders p90 < 500ms'",
      "  - name: 'slo GET /orders 99%'",
    ]);
    const series = text.match(/- record: .+\n.+\n.+$/gm)!.map((rule) => rule.replace(/\n +expr: .+/, ''));
    expect(new Set(series).size).toBe(series.length);
  });

  it('finds a bound of whole seconds as Prometheus 2 and 3 write it', () => {
    expect(writeRules(['GET /orders p95 < 1s 99.9%'])).toContain('le=~"1|1\\\\.0"}[5m]');
  });

  it('leaves out an alert that could never fire', () => {
    const text = writeRules(['GET /orders p90 < 250ms 99.9%']);
    expect(text.match(/- alert: SloTooSlow/g)).toHaveLength(3);
    expect(text).not.toContain('> 1.44');
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
