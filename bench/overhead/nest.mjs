// Bare Nest on Fastify: the base, and once more the control.
import { serveApi } from './application.mjs';

await serveApi();
