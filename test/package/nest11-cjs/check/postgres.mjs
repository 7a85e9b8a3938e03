// A real PostgreSQL in a process of its own: writes its port when it listens.
import { PGlite } from '@electric-sql/pglite';
import { PGLiteSocketServer } from '@electric-sql/pglite-socket';

const server = new PGLiteSocketServer({ db: await PGlite.create(), host: '127.0.0.1', port: 0, maxConnections: 8 });
await server.start();
console.log(server.getServerConn().split(':').at(-1));
