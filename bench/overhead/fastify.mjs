// Fastify alone: what Nest itself costs.
import fastify from 'fastify';
import { serveOn } from '../harness/index.mjs';
import { ROUTE, makeUser } from './application.mjs';

const app = fastify();
app.get(ROUTE, async (request) => makeUser(request.params.id));
await app.listen({ port: 0, host: '127.0.0.1' });
serveOn(app.server.address().port);
