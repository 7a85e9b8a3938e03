// Statsig's API on this machine: one gate that half of the users pass, and a place for the events.
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gunzipSync } from 'node:zlib';

export interface LoopbackEvent {
  eventName: string;
  user: { userID?: string };
  metadata: Record<string, string>;
}

export interface Loopback {
  /** The SDK's `api` option. */
  api: string;
  events: LoopbackEvent[];
  close(): Promise<void>;
}

const everybody = {
  type: 'public',
  targetValue: null,
  operator: null,
  field: null,
  additionalValues: {},
  isDeviceBased: false,
  idType: 'userID',
};

function gate(name: string, passPercentage: number): object {
  const rule = {
    name: 'half',
    id: 'half',
    groupName: 'half',
    salt: 'half',
    passPercentage,
    returnValue: true,
    idType: 'userID',
    conditions: [everybody],
  };
  const common = { type: 'feature_gate', salt: name, enabled: true, defaultValue: false, idType: 'userID' };
  return { name, ...common, entity: 'feature_gate', isActive: true, rules: [rule] };
}

export async function startLoopback(gates: Readonly<Record<string, number>>): Promise<Loopback> {
  const specs = JSON.stringify({
    has_updates: true,
    time: 1,
    feature_gates: Object.entries(gates).map(([name, passPercentage]) => gate(name, passPercentage)),
    dynamic_configs: [],
    layer_configs: [],
  });
  const events: LoopbackEvent[] = [];
  const server = createServer((request, response) => {
    void readBody(request).then((body) => {
      response.setHeader('content-type', 'application/json');
      if (request.url?.includes('download_config_specs') === true) response.end(specs);
      else if (request.url?.endsWith('/log_event') === true) {
        events.push(...(JSON.parse(body) as { events: LoopbackEvent[] }).events);
        response.writeHead(202).end('{"success":true}');
      } else response.end('{}');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    api: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    events,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const body = Buffer.concat(chunks);
  return (request.headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body).toString();
}
