import { formatBytes, formatDuration, formatPercent } from '../format.js';
import { Chart, type Line } from './chart.js';
import { Figures, Meter, Section } from './parts.js';
import type { DashboardData as State } from '../view.js';

const formatCores = (cores: number | null): string => (cores === null ? '–' : cores.toFixed(cores < 10 ? 2 : 1));

export function Container({ state: { sections, container } }: { state: State }) {
  const { resources } = sections;
  if (resources === null)
    return (
      <Section id="container" title="Container" empty="No sample yet, or resources are off (`resources: false`)." />
    );
  const { limits, cpu, memory, process: own, pressure } = resources;
  const used = memory.workingSetBytes ?? memory.usageBytes;
  const share = (value: number | null, limit: number | null): number | null =>
    value === null || limit === null ? null : value / limit;
  const of = (value: string, limit: string | null): string =>
    limit === null ? `${value}, no limit` : `${value} of ${limit}`;
  const points = container.map((point) => [...point, limits.cpuCores, limits.memoryBytes]);
  const makeLines = (used: number, limit: number): Line[] => [
    { label: 'used', color: '--accent', filled: true, column: used },
    { label: 'limit', color: '--muted', dashed: true, column: limit, optional: true },
  ];
  const throttled = cpu.window?.throttledRatio ?? null;
  return (
    <Section
      id="container"
      title="Container"
      about={
        limits.version === 'none'
          ? 'No cgroup limits: figures are of this process and the machine.'
          : 'Against the limits that hold here.'
      }
    >
      <div class="meters">
        <Meter
          name={limits.ofMachine.cpu ? 'CPU of the machine' : 'CPU'}
          share={cpu.window?.utilization ?? null}
          text={of(
            `${formatCores(cpu.window?.usageCores ?? null)} cores`,
            limits.cpuCores === null ? null : String(limits.cpuCores),
          )}
        />
        <Meter
          name={limits.ofMachine.memory ? 'Memory of the machine' : 'Memory'}
          share={share(used, limits.memoryBytes)}
          text={of(formatBytes(used), limits.memoryBytes === null ? null : formatBytes(limits.memoryBytes))}
        />
        <Meter
          name="Heap"
          share={share(own.heapUsedBytes, own.heapLimitBytes)}
          text={of(formatBytes(own.heapUsedBytes), formatBytes(own.heapLimitBytes))}
        />
        <Meter name="Throttled periods" share={throttled} text={formatPercent(throttled)} />
      </div>
      {points.length > 1 && (
        <div class="charts">
          <Chart
            group="container"
            title="CPU cores"
            points={points}
            lines={makeLines(1, 4)}
            format={formatCores}
            atLeast={limits.cpuCores ?? 0.1}
          />
          <Chart
            group="container"
            title="Memory"
            points={points}
            lines={makeLines(2, 5)}
            format={formatBytes}
            atLeast={limits.memoryBytes ?? 2 ** 20}
          />
        </div>
      )}
      <Figures
        figures={[
          ['resident', formatBytes(own.rssBytes)],
          ['waited for a CPU', cpu.window?.runQueueMs == null ? '–' : formatDuration(cpu.window.runQueueMs)],
          ['CPU pressure', formatPercent(pressure.cpuSomeRatio)],
          ['memory pressure', formatPercent(pressure.memoryFullRatio)],
          [
            'killed for memory',
            memory.oomKills === null ? '–' : String(memory.oomKills),
            (memory.oomKills ?? 0) > 0 ? 'bad' : '',
          ],
          ['cgroup', limits.version],
        ]}
      />
    </Section>
  );
}
