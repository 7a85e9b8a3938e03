import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gunzipSync } from 'node:zlib';

interface Event {
  eventName: string;
  value: number | null;
  user: { userID: string };
  metadata: object;
}

/** Answers like Statsig's API and says one line for each event that arrives. */
export async function standIn(say: (line: string) => void): Promise<{ api: string; close(): void }> {
  const server = createServer((request, response) => void answer(request, response, say));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    api: `http://127.0.0.1:${port}/v1`,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

async function answer(request: IncomingMessage, response: ServerResponse, say: (line: string) => void): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  response.setHeader('content-type', 'application/json');
  if (request.url?.includes('download_config_specs') === true) {
    response.end('{"has_updates":true,"time":1,"feature_gates":[],"dynamic_configs":[],"layer_configs":[]}');
    return;
  }
  if (request.url?.endsWith('/log_event') === true) {
    const body = Buffer.concat(chunks);
    const text = request.headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body;
    const { events } = JSON.parse(text.toString()) as { events: Event[] };
    for (const { eventName, value, user, metadata } of events) {
      if (!eventName.startsWith('statsig::')) {
        say(`  ${eventName} ${value?.toFixed(2)} for ${user.userID} ${JSON.stringify(metadata)}`);
      }
    }
  }
  response.end('{}');
}
