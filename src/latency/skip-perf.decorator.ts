import { SetMetadata, type CustomDecorator } from '@nestjs/common';
import { SKIP_METADATA } from '../http/route-handler.js';

/** Leaves a handler, or every handler of a controller, out of records and statistics. */
export const SkipPerf = (): CustomDecorator => SetMetadata(SKIP_METADATA, true);
