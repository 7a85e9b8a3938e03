import { Logger } from '@nestjs/common';
import { loggerSink } from '../../src/index.js';
import { sinkContract } from './sink.contract.js';

// Nest's `Logger` is the other end: it writes to whatever logger the application has set, which is one a process.
for (const format of ['text', 'object'] as const) {
  sinkContract(`loggerSink, ${format}`, () => {
    const slow: unknown[] = [];
    const isSlow = (message: unknown): boolean =>
      format === 'text'
        ? String(message).includes(' took ')
        : (message as { event?: unknown }).event === 'slow_request';
    Logger.overrideLogger({
      log() {},
      error() {},
      warn: (message: unknown) => void (isSlow(message) && slow.push(message)),
    });
    return {
      sink: loggerSink({ format }),
      // Every completed request is slow.
      slowMs: -1,
      requestsArrived: () => slow.length,
      dispose: () => Logger.overrideLogger(true),
    };
  });
}
