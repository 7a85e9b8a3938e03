import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { freePort } from '../../../scripts/redis.mjs';
import { prometheusSink } from '../../../src/entries/prometheus.js';
import { blockRecord } from '../../fixtures/records.js';
import { everything } from '../../fixtures/sink-host.js';
import { until } from '../../fixtures/until.js';

const dashboard = JSON.parse(readFileSync('examples/prometheus/grafana-dashboard.json', 'utf8')) as {
  panels: { title: string; targets?: { expr: string }[] }[];
};

async function answers(url: string, expr: string): Promise<number> {
  const query = expr.replaceAll('$__rate_interval', '10s').replaceAll(/\$(job|instance)/g, '.*');
  const response = await fetch(`${url}/api/v1/query?query=${encodeURIComponent(query)}`);
  const { data, error } = (await response.json()) as { data?: { result: unknown[] }; error?: string };
  if (error !== undefined) throw new Error(`${query}: ${error}`);
  return data!.result.length;
}

const hasPrometheus = spawnSync('prometheus', ['--version']).status === 0;
it.skipIf(!hasPrometheus)(
  `a real Prometheus answers every panel of the dashboard with data, also without limits of the container${hasPrometheus ? '' : ' (skipped: no prometheus on PATH)'}`,
  async () => {
    const host = everything();
    const { limits, cpu } = host.snapshots.resources!;
    Object.assign(limits, { memoryBytes: null, cpuCores: null });
    Object.assign(cpu, { periods: null, throttledPeriods: null });
    const sink = prometheusSink({ port: 0 });
    await sink.start?.(host);
    await sink.publish([blockRecord()]);
    const folder = mkdtempSync(join(tmpdir(), 'prometheus-'));
    const config = join(folder, 'prometheus.yml');
    // YAML holds JSON.
    const scrape = {
      job_name: 'app',
      scrape_interval: '1s',
      static_configs: [{ targets: [`127.0.0.1:${sink.port}`] }],
    };
    writeFileSync(config, JSON.stringify({ scrape_configs: [scrape] }));
    const url = `http://127.0.0.1:${await freePort()}`;
    const prometheus = spawn(
      'prometheus',
      [`--config.file=${config}`, `--storage.tsdb.path=${folder}/data`, `--web.listen-address=${url.slice(7)}`],
      { stdio: 'ignore' },
    );
    try {
      await until('two scrapes', async () => {
        host.requests('GET', '/users/:id', 500, [3]);
        return (await answers(url, 'rate(process_cpu_seconds_total[10s])').catch(() => 0)) > 0;
      });
      const empty: string[] = [];
      for (const { title, targets } of dashboard.panels) {
        if (targets === undefined) continue;
        const counts = await Promise.all(targets.map(({ expr }) => answers(url, expr)));
        if (!counts.some((count) => count > 0)) empty.push(title);
      }
      expect(empty).toEqual([]);
    } finally {
      prometheus.kill();
      await once(prometheus, 'exit');
      rmSync(folder, { recursive: true });
      await sink.close?.();
    }
  },
);
