// The API with OpenTelemetry's http instrumentation.
import { instrument } from './opentelemetry.mjs';

instrument();
const { serveApi } = await import('../overhead/application.mjs');
await serveApi();
