// What the generations of a cell become: rows, the verdict, and a Markdown table.
import { interval, median, medianWithInterval } from '../harness/index.mjs';
import { pairedRatios } from '../harness/interleaved.mjs';
import { boundsOf, cellName, judge, verdictOf } from './cells.mjs';

/** `generations` are `{ bursts, atRate }`, those that were kept. */
export function summariseCell(sink, connections, variants, generations, discardedRuns) {
  const name = cellName(sink, connections);
  if (generations.length === 0) return { name, verdict: 'not measured', discardedRuns, bounds: [], rows: [] };
  const ratio = (variant, base, quantity) => {
    const by = generations.map(({ bursts }) => pairedRatios(bursts, variant, base, quantity));
    return rounded(medianWithInterval(by));
  };
  const rate = generations.find(({ atRate }) => atRate !== null)?.atRate ?? null;
  const rows = variants.map((variant) => {
    const all = (quantity) => median(generations.flatMap(({ bursts }) => bursts[variant].map((one) => one[quantity])));
    return {
      name: variant,
      requestsPerS: Math.round(all('requestsPerS')),
      throughput: {
        blocking: ratio(variant, 'blocking', 'requestsPerS'),
        article: ratio(variant, 'article', 'requestsPerS'),
      },
      cpuUsPerRequest: digits(all('cpuUs'), 2),
      cpu: { blocking: ratio(variant, 'blocking', 'cpuUs'), article: ratio(variant, 'article', 'cpuUs') },
      p50Ms: digits(all('p50Ms'), 3),
      atRate: rate === null ? null : rate[variant],
    };
  });
  const bounds = boundsOf(sink, connections).map((bound) => {
    const row = rows.find((one) => one.name === bound.row);
    return { ...bound, ...judge(bound, row[bound.quantity][bound.against]) };
  });
  const rounds = generations.reduce((sum, { bursts }) => sum + bursts.blocking.length, 0);
  return { name, verdict: verdictOf(bounds), rounds, discardedRuns, bounds, rows };
}

/** Every row, then the verdicts. */
export function markdown(cells) {
  const head =
    '| cell | variant | req/s | × blocking (95 %) | × article | CPU µs | CPU × blocking | CPU × article | p50 ms | p50, p99 ms at one rate |';
  const rows = cells.flatMap(({ name, rows }) =>
    rows.map((row) => {
      const { throughput, cpu, atRate } = row;
      const latency = atRate === null ? '' : `${atRate.p50Ms.toFixed(1)}, ${atRate.p99Ms.toFixed(1)}`;
      const figures = [interval(throughput.blocking), interval(throughput.article), row.cpuUsPerRequest.toFixed(0)];
      const ratios = [interval(cpu.blocking), interval(cpu.article), row.p50Ms.toFixed(2), latency];
      return `| ${[name, row.name, row.requestsPerS, ...figures, ...ratios].join(' | ')} |`;
    }),
  );
  return `${head}\n${'|---'.repeat(10)}|\n${rows.join('\n')}\n\n${verdicts(cells)}`;
}

function verdicts(cells) {
  const lines = cells.map(({ name, verdict, rounds, bounds, discardedRuns }) => {
    const said = bounds.map((bound) => {
      const { row, quantity, against, atLeast, atMost, met } = bound;
      const wanted = atMost === undefined ? `≥ ${atLeast}` : `≤ ${atMost}`;
      return `${row} ${quantity} × ${against} ${interval(bound)} ${wanted}${met ? '' : ' **missed**'}`;
    });
    return `| ${name} | **${verdict}** | ${said.join('; ')} | ${rounds ?? 0} | ${discardedRuns.length} |`;
  });
  return `| cell | verdict | bounds | rounds | discarded |\n|---|---|---|---:|---:|\n${lines.join('\n')}`;
}

const digits = (number, count) => Number(number.toFixed(count));
const rounded = ({ median, low, high }) => ({ median: digits(median, 4), low: digits(low, 4), high: digits(high, 4) });
