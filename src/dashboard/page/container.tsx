import type { ComponentChildren } from 'preact';
import { formatBytes, formatDuration, formatPercent } from '../format.js';
import type { DashboardData as State } from '../view.js';
import { Chart, Charts, type Line } from './chart.js';
import { Bar, Figures, Section } from './parts.js';

const formatCores = (cores: number | null): string => (cores === null ? '–' : cores.toFixed(cores < 10 ? 2 : 1));

export function Container({ state: { sections, container } }: { state: State }) {
  const { resources } = sections;
  if (resources === null)
    return (
      <Section id="container" title="Container" empty="No sample yet, or resources are off (`resources: false`)." />
    );
  const { limits, cpu, memory, process: own, pressure } = resources;
  const { usageCores = null, utilization = null, throttledRatio = null, runQueueMs = null } = cpu.window ?? {};
  const used = memory.workingSetBytes ?? memory.usageBytes;
  const points = container.map((point) => [...point, limits.cpuCores, limits.memoryBytes]);
  const drawLimited = (column: number, limit: number): Line[] => [
    { label: 'used', color: 'accent', filled: true, column },
    { label: 'limit', color: 'muted', dashed: true, column: limit, optional: true },
  ];
  const memoryLimit = limits.memoryBytes;
  const memoryShare = used === null || memoryLimit === null ? null : used / memoryLimit;
  const about =
    limits.version === 'none'
      ? 'No cgroup limits: figures are of this process and the machine.'
      : 'Against the limits that hold here.';
  return (
    <Section id="container" title="Container" about={about}>
      <div class="charts">
        <Meter name="CPU" share={utilization}>
          {formatCores(usageCores)} cores{limits.cpuCores === null ? ', no limit' : ` of ${limits.cpuCores}`}
        </Meter>
        <Meter name="Memory" share={memoryShare}>
          {formatBytes(used)}
          {memoryLimit === null ? ', no limit' : ` of ${formatBytes(memoryLimit)}`}
        </Meter>
        <Meter name="Heap" share={own.heapUsedBytes / own.heapLimitBytes}>
          {formatBytes(own.heapUsedBytes)} of {formatBytes(own.heapLimitBytes)}
        </Meter>
        <Meter name="Throttled periods" share={throttledRatio}>
          {formatPercent(throttledRatio)}
        </Meter>
      </div>
      {points.length > 1 && (
        <Charts>
          <Chart
            title="CPU cores"
            points={points}
            lines={drawLimited(1, 3)}
            format={formatCores}
            atLeast={limits.cpuCores ?? 0.1}
          />
          <Chart
            title="Memory"
            points={points}
            lines={drawLimited(2, 4)}
            format={formatBytes}
            atLeast={memoryLimit ?? 2 ** 20}
          />
        </Charts>
      )}
      <Figures
        figures={[
          ['resident', formatBytes(own.rssBytes)],
          ['waited for a CPU', formatDuration(runQueueMs)],
          ['CPU pressure', formatPercent(pressure.cpuSomeRatio)],
          ['memory pressure', formatPercent(pressure.memoryFullRatio)],
          ['killed for memory', String(memory.oomKills ?? '–'), (memory.oomKills ?? 0) > 0 ? 'bad' : ''],
          ['cgroup', limits.version],
        ]}
      />
    </Section>
  );
}

function Meter({ name, share, children }: { name: string; share: number | null; children: ComponentChildren }) {
  const color = (share ?? 0) > 0.9 ? 'bad' : (share ?? 0) > 0.75 ? 'warn' : 'accent';
  return (
    <p class="box row">
      <span class="dim">{name}</span>
      <b class="end">{children}</b>
      <Bar parts={[[color, share ?? 0]]} />
    </p>
  );
}
