// The twelve cells, who competes in them, and what each must show.

export const CONNECTIONS = [10, 50, 100];

/** Beside `blocking` and its twin: those of Redis and those of a timer. */
const OF_TIMERS = ['none', 'article', 'ours'];
const OF_REDIS = [...OF_TIMERS, 'durable', 'envelope'];
export const SINKS = {
  'timer-5': OF_TIMERS,
  'timer-25': OF_TIMERS,
  'redis-local': OF_REDIS,
  'redis-remote': OF_REDIS,
};

/** The core is the limit there and nothing can be batched, or a batch is too small: level is all that can be asked for. */
const CORE_BOUND = new Set(['timer-5-100', 'redis-local-10']);
const LEVEL = 0.95;

export const cellName = (sink, connections) => `${sink}-${connections}`;
export const usesRedis = (sink) => sink.startsWith('redis');

/**
 * What a cell asks of its rows: `{ row, quantity, against, atLeast | atMost }`, ratios of requests per second or of CPU
 * per request.
 */
export function boundsOf(sink, connections) {
  const bounds = [];
  const coreBound = CORE_BOUND.has(cellName(sink, connections));
  const atLeast = coreBound ? LEVEL : 1;
  const remoteOfTen = sink === 'redis-remote' && connections === 10;
  bounds.push({ row: 'ours', quantity: 'throughput', against: 'blocking', atLeast: remoteOfTen ? 10 : atLeast });
  bounds.push({ row: 'ours', quantity: 'throughput', against: 'article', atLeast });
  if (coreBound || usesRedis(sink)) bounds.push({ row: 'ours', quantity: 'cpu', against: 'article', atMost: 1 });
  if (usesRedis(sink) && !coreBound) bounds.push({ row: 'ours', quantity: 'cpu', against: 'blocking', atMost: 1 });
  if (sink === 'redis-local') {
    bounds.push({ row: 'envelope', quantity: 'throughput', against: 'blocking', atLeast: 1.3 });
  }
  return bounds;
}

/** `met` when the better end of the interval reaches the bound; `clear` when the worse end does as well. */
export function judge({ atLeast, atMost }, { median, low, high }) {
  const met = atMost === undefined ? high >= atLeast : low <= atMost;
  const clear = atMost === undefined ? low >= atLeast : high <= atMost;
  return { median, low, high, met, clear };
}

/** Of a cell: `win` is faster than both for certain, `draw` meets every bound, `miss` does not. */
export function verdictOf(judged) {
  if (judged.some(({ met }) => !met)) return 'miss';
  const faster = judged.filter(({ row, quantity }) => row === 'ours' && quantity === 'throughput');
  return faster.every(({ low }) => low > 1) ? 'win' : 'draw';
}
