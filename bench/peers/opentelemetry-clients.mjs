// OpenTelemetry's instrumentations of http, undici (fetch) and ioredis.
import { IORedisInstrumentation } from '@opentelemetry/instrumentation-ioredis';
import { UndiciInstrumentation } from '@opentelemetry/instrumentation-undici';
import { instrument } from './opentelemetry.mjs';

instrument(new UndiciInstrumentation(), new IORedisInstrumentation());
