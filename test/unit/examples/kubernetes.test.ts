import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { writeRules } from '../../../src/dashboard/top/rules.js';

const require = createRequire(new URL('../../manifests/package.json', import.meta.url));
const { parse } = require('yaml') as { parse(text: string): any };
type Model = new (manifest: object) => { validate(): void };
interface SyntaxNode {
  readonly type: { readonly isError: boolean };
}
const { parser } = require('@prometheus-io/lezer-promql') as {
  parser: { parse(query: string): { iterate(spec: { enter(node: SyntaxNode): void }): void } };
};
const operator = require('@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1') as Record<string, Model>;
const models: Record<string, Model> = {
  Deployment: (require('kubernetes-models/apps/v1') as Record<string, Model>)['Deployment']!,
  PodMonitor: operator['PodMonitor']!,
  PrometheusRule: operator['PrometheusRule']!,
  ScaledObject: (require('@kubernetes-models/keda/keda.sh/v1alpha1') as Record<string, Model>)['ScaledObject']!,
};

const read = (file: string): any => parse(readFileSync(`examples/${file}`, 'utf8'));
const isPromql = (query: string): boolean => {
  let isValid = true;
  parser.parse(query).iterate({ enter: ({ type }) => void (isValid &&= !type.isError) });
  return isValid;
};
const queriesOf = ({ groups }: { groups: { rules: { expr: string }[] }[] }): string[] =>
  groups.flatMap(({ rules }) => rules.map(({ expr }) => expr));
const SLOS = [
  'GET /orders/:id p95 < 250ms 99.9%',
  'GET /orders/:id p99 < 1s 99.9%',
  `POST /it's/"odd"/\\ p99 < 1s 99%`,
];

describe('examples/kubernetes', () => {
  it.each([
    ['deployment', 'Deployment', ['template']],
    ['pod-monitor', 'PodMonitor', ['podMetricsEndpoints']],
    ['prometheus-rule', 'PrometheusRule', ['groups']],
    ['scaled-object', 'ScaledObject', ['triggers']],
  ])('%s.yaml is what the schema of %s accepts', (file, kind, [field]) => {
    const manifest = read(`kubernetes/${file}.yaml`);
    const validate = (given: object): void => new models[kind]!(given).validate();
    expect(manifest.kind).toBe(kind);
    validate(manifest);
    expect(() => validate({ ...manifest, spec: { ...manifest.spec, [field!]: 'wrong' } })).toThrow(field);
  });

  it('has probes of ports that the container names, and a PodMonitor of one of them', () => {
    const [container] = read('kubernetes/deployment.yaml').spec.template.spec.containers;
    const ports = container.ports.map(({ name }: { name: string }) => name);
    const { startupProbe, livenessProbe, readinessProbe } = container;
    for (const { httpGet } of [startupProbe, livenessProbe, readinessProbe]) expect(ports).toContain(httpGet.port);
    const [endpoint] = read('kubernetes/pod-monitor.yaml').spec.podMetricsEndpoints;
    expect([endpoint.port, endpoint.path]).toEqual([livenessProbe.httpGet.port, '/metrics']);
  });

  it('has queries that a parser of PromQL accepts, and so have all rules that are written or shown', () => {
    const [trigger] = read('kubernetes/scaled-object.yaml').spec.triggers;
    const [, alert] = /^  expr: (.+)$/m.exec(readFileSync('docs/liveness.md', 'utf8'))!;
    const queries = [
      trigger.metadata.query,
      alert,
      ...queriesOf(read('kubernetes/prometheus-rule.yaml').spec),
      ...queriesOf(parse(writeRules(SLOS))),
      ...queriesOf(read('prometheus/alerts.yml')),
    ] as string[];
    expect(queries.length).toBeGreaterThan(60);
    expect(queries.filter((query) => !isPromql(query))).toEqual([]);
    expect(isPromql('sum(rate(requests_total[5m))')).toBe(false);
  });

  const hasPromtool = spawnSync('promtool', ['--version']).status === 0;
  it.skipIf(!hasPromtool)(`has rules that promtool takes${hasPromtool ? '' : ' (not on PATH)'}`, () => {
    const folder = mkdtempSync(join(tmpdir(), 'rules-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    writeFileSync(join(folder, 'slo.yml'), writeRules(SLOS));
    const { status, stdout, stderr } = spawnSync('promtool', ['check', 'rules', join(folder, 'slo.yml')], {
      encoding: 'utf8',
    });
    expect([status, stderr]).toEqual([0, '']);
    expect(stdout).toContain('SUCCESS: 55 rules found');
  });
});
