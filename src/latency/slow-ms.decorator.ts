import { SetMetadata, type CustomDecorator } from '@nestjs/common';
import { number } from '../core/option.js';
import { SLOW_METADATA } from '../http/route-handler.js';

const milliseconds = number({ unit: 'a number of milliseconds' });

/**
 * Requests of a handler, or of every handler of a controller, are slow beyond so many milliseconds, whatever `latency.slowMs`
 * says. The handler's own goes before its controller's.
 * @throws PERF_ERR_OPTION when it is no number above 0
 */
export const SlowMs = (ms: number): CustomDecorator => SetMetadata(SLOW_METADATA, milliseconds.read(ms, '@SlowMs()'));
