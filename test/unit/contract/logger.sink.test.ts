import { Logger } from '@nestjs/common';
import { loggerSink } from '../../../src/index.js';
import { sinkContract } from './sink.contract.js';

interface Line {
  readonly event?: string;
  readonly routes?: readonly { readonly count: number }[];
}

/** How many slow requests a line tells of: the first of a route has a line of its own, the rest are counted in one. */
function slowIn(message: unknown): number {
  if (typeof message === 'string') {
    return Number(/^(\d+) more slow request/.exec(message)?.[1] ?? (message.includes(' took ') ? 1 : 0));
  }
  const { event, routes = [] } = message as Line;
  if (event === 'verdict') return 0;
  return event === 'slow_request' ? 1 : routes.reduce((sum, { count }) => sum + count, 0);
}

// Nest's `Logger` is the other end: it writes to whatever logger the application has set, which is one a process.
for (const format of ['text', 'object'] as const) {
  sinkContract(`loggerSink, ${format}`, () => {
    let slow = 0;
    Logger.overrideLogger({
      log() {},
      error() {},
      warn: (message: unknown) => void (slow += slowIn(message)),
    });
    const sink = loggerSink({ format });
    return {
      sink,
      slow: true,
      requestsArrived: async () => {
        await sink.close?.();
        return slow;
      },
      dispose: () => Logger.overrideLogger(true),
    };
  });
}
