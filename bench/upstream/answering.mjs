// The server that is asked: a small JSON at once.
import { createServer } from 'node:http';
import { answerParent } from '../harness/pinned-process.mjs';

const server = createServer((request, response) => {
  response.setHeader('content-type', 'application/json');
  response.end('{"price":9}');
});
server.listen(0, '127.0.0.1', () => answerParent({}, { port: server.address().port }));
