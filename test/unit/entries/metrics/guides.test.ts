import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { METRICS } from '../../../../src/entries/metrics/catalogue.js';
import { DURATIONS } from '../../../../src/entries/metrics/durations.js';

/** Names in the first column of a guide's table of metrics; `.p99` after `a.b.p50` stands for `a.b.p99`. */
function tableOf(guide: string): string[] {
  const table = readFileSync(`docs/${guide}.md`, 'utf8').split('## Metrics')[1]!.split('\n## ')[0]!;
  const rows = table.split('\n').filter((line) => line.startsWith('| `'));
  return rows.flatMap((row) => {
    let last = '';
    return Array.from(row.split(' | ')[0]!.matchAll(/`([^`]+)`/g), ([, name]) => {
      last = name!.startsWith('.') ? last.replace(/\.[^.]+$/, name!) : name!;
      return last;
    });
  });
}

describe('the guides', () => {
  it('list every Prometheus metric, and no other', () => {
    const names = [
      ...DURATIONS.map(({ prometheus }) => prometheus),
      ...METRICS.map(({ prometheus }) => prometheus.name),
    ];
    expect(tableOf('prometheus').sort()).toEqual([...new Set(names)].sort());
  });

  it('list every OpenTelemetry metric, and no other', () => {
    const names = [...DURATIONS.map(({ name }) => name), ...METRICS.map(({ name }) => name)];
    expect(tableOf('opentelemetry').sort()).toEqual(names.sort());
  });
});
