import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { prometheusSink } from '../../../src/entries/prometheus.js';
import { parseExposition } from '../../fixtures/exposition.js';
import { blockRecord } from '../../fixtures/records.js';
import { everything } from '../../fixtures/sink-host.js';

interface Panel {
  type: string;
  title: string;
  targets?: { expr: string; legendFormat: string }[];
}
const dashboard = JSON.parse(readFileSync('examples/prometheus/grafana-dashboard.json', 'utf8')) as {
  panels: Panel[];
  templating: { list: { query: string | { query: string } }[] };
};
const targets = dashboard.panels.flatMap(({ title, targets = [] }) => targets.map((target) => ({ title, ...target })));
const variables = dashboard.templating.list.map(({ query }) => (typeof query === 'string' ? query : query.query));

/** Names and labels that a scrape with every feature on has; Prometheus itself adds `job` and `instance`. */
async function exposed(): Promise<Map<string, Set<string>>> {
  const host = everything();
  const sink = prometheusSink();
  await sink.start?.(host);
  await sink.publish([blockRecord()]);
  const labelsOf = new Map<string, Set<string>>();
  for (const { samples } of parseExposition((await host.ask('/metrics')).body).values()) {
    for (const { name, labels } of samples) {
      const known = labelsOf.get(name) ?? new Set(['job', 'instance']);
      for (const label of Object.keys(labels)) known.add(label);
      labelsOf.set(name, known);
    }
  }
  return labelsOf;
}

const NAME = /\b[a-z]+(?:_[a-z]+)+\b/g;
/** Words with an underscore that are no metric: functions, labels. */
const notMetrics = (expr: string): string =>
  expr
    .replaceAll(/histogram_quantile|label_values/g, '')
    .replaceAll(/\bby \([^)]*\)/g, '')
    .replaceAll(/\{[^}]*\}/g, '');
const metricsOf = (expr: string): string[] => notMetrics(expr).match(NAME) ?? [];
const labelsIn = (expr: string): string[] => [
  ...[...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list]) => list!.split(', ')),
  ...[...expr.matchAll(/([a-z_]+)=~?"/g)].map(([, label]) => label!),
];

describe('the Grafana dashboard', () => {
  it('asks for no metric and no label that the sink does not expose', async () => {
    const labelsOf = await exposed();
    expect(targets.length).toBeGreaterThan(15);
    for (const expr of [...targets.map(({ expr }) => expr), ...variables.filter((query) => query.includes('('))]) {
      const names = metricsOf(expr);
      expect(names.length, expr).toBeGreaterThan(0);
      for (const name of names) {
        expect([...labelsOf.keys()], expr).toContain(name);
        for (const label of labelsIn(expr)) expect([...labelsOf.get(name)!, 'job', 'instance'], expr).toContain(label);
      }
    }
  });

  it('shows every metric that the sink exposes', async () => {
    const shown = new Set(targets.flatMap(({ expr }) => metricsOf(expr)));
    const exposedNames = [...(await exposed()).keys()].filter((name) => !name.endsWith('_sum'));
    // The buckets of a histogram show its count.
    const isShown = (name: string): boolean => shown.has(name) || shown.has(name.replace(/_count$/, '_bucket'));
    expect(exposedNames.filter((name) => !isShown(name))).toEqual([]);
  });

  it('names in its legends only labels that its queries keep', () => {
    for (const { expr, legendFormat } of targets) {
      for (const [, label] of legendFormat.matchAll(/\{\{(\w+)\}\}/g)) {
        const kept = expr.includes(' by (') ? labelsIn(expr) : ['instance', 'job'];
        expect(kept, expr).toContain(label);
      }
    }
  });

  const hasPromtool = spawnSync('promtool', ['--version']).status === 0;
  it.skipIf(!hasPromtool)(
    `is PromQL${hasPromtool ? '' : ' (skipped: no promtool on PATH; Debian has it in the package prometheus)'}`,
    () => {
      const rules = targets.map(({ expr }, i) => ({
        record: `panel:${i}`,
        // What Grafana puts in for its variables.
        expr: expr.replaceAll('$__rate_interval', '1m').replaceAll(/\$(job|instance)/g, '.*'),
      }));
      const folder = mkdtempSync(join(tmpdir(), 'dashboard-'));
      const file = join(folder, 'rules.yml');
      // YAML holds JSON.
      writeFileSync(file, JSON.stringify({ groups: [{ name: 'dashboard', rules }] }));
      const checked = spawnSync('promtool', ['check', 'rules', file], { encoding: 'utf8' });
      rmSync(folder, { recursive: true });
      expect(checked.stderr).toBe('');
      expect(checked.stdout).toContain(`SUCCESS: ${rules.length} rules found`);
    },
  );
});
