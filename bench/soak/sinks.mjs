import { setTimeout as delay } from 'node:timers/promises';

/** Counts what it is given and keeps none of it. */
export class CountingSink {
  name = 'counting';
  counts = { all: 0, requests: {}, blocks: 0, blamed: {}, unexpected: [], deferred: {}, resources: 0 };

  publish(records) {
    const { counts } = this;
    counts.all += records.length;
    for (const record of records) {
      if (record.kind === 'request') {
        const route = `${record.method} ${record.route}`;
        const own = (counts.requests[route] ??= { count: 0, aborted: 0, blockedMs: 0 });
        own.count += 1;
        own.blockedMs += record.blockedMs;
        if (record.outcome === 'aborted') own.aborted += 1;
      } else if (record.kind === 'block') {
        counts.blocks += 1;
        const blamed = record.request?.route ?? 'nobody';
        counts.blamed[blamed] = (counts.blamed[blamed] ?? 0) + 1;
        // For who has to judge them: what else stood in the way than the route that blocks on purpose.
        if (blamed !== '/block' && counts.unexpected.length < 20)
          counts.unexpected.push({ ...record, delayed: record.delayed.length });
      } else if (record.kind === 'deferred') {
        counts.deferred[record.outcome] = (counts.deferred[record.outcome] ?? 0) + 1;
      } else counts.resources += 1;
    }
  }
}

/** Throws or rejects on two batches in five. */
export function failingSink() {
  let batches = 0;
  return {
    name: 'flaky',
    received: 0,
    publish(records) {
      batches += 1;
      if (batches % 5 === 2) throw new Error('no disk');
      const rejects = batches % 5 === 4;
      if (!rejects) this.received += records.length;
      return rejects ? Promise.reject(new Error('no network')) : Promise.resolve();
    },
  };
}

/** Slow, and now and then far slower than records come. */
export function stallingSink() {
  let batches = 0;
  return {
    name: 'stalling',
    received: 0,
    async publish(records) {
      batches += 1;
      await delay(batches % 40 === 0 ? 3_000 : 50, undefined, { ref: false });
      this.received += records.length;
    },
  };
}
