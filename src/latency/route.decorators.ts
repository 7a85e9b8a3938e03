import { SetMetadata, type CustomDecorator } from '@nestjs/common';
import { duration } from '../core/shared-options.js';
import { SKIP_METADATA, SLOW_METADATA } from '../request/handlers.js';

/** Leaves a handler, or every handler of a controller, out of records and statistics. */
export const SkipPerf = (): CustomDecorator => SetMetadata(SKIP_METADATA, true);

const milliseconds = duration();

/**
 * Requests of a handler, or of every handler of a controller, are slow beyond so many milliseconds, instead of
 * `latency.slowMs`. The handler's own overrides its controller's.
 * @throws PERF_ERR_OPTION when it is no number above 0
 */
export const SlowMs = (ms: number): CustomDecorator => SetMetadata(SLOW_METADATA, milliseconds.read(ms, '@SlowMs()'));
