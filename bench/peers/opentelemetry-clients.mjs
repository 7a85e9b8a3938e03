// The same of undici (fetch) and ioredis, too.
import { IORedisInstrumentation } from '@opentelemetry/instrumentation-ioredis';
import { UndiciInstrumentation } from '@opentelemetry/instrumentation-undici';
import { instrument } from './opentelemetry.mjs';

instrument(new UndiciInstrumentation(), new IORedisInstrumentation());
