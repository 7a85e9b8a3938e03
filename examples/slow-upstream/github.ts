// Two GitHubs: the one of everybody, and the one that acme runs itself.
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

const USUAL_MS = 15;
const SLOW_MS = 900;

const server = (slowable: boolean): Server =>
  createServer((request, response) => {
    const slow = slowable && request.url?.endsWith('slow=true') === true;
    void delay(slow ? SLOW_MS : USUAL_MS).then(() => response.end('["api", "web"]'));
  });

const servers = new Map([
  ['api.github.com', server(false)],
  ['ghe.acme.com', server(true)],
]);
const readHost = (of: Server): string => `127.0.0.1:${(of.address() as AddressInfo).port}`;

export async function startGitHubs(): Promise<void> {
  for (const each of servers.values()) await once(each.listen(0, '127.0.0.1'), 'listening');
}

export function stopGitHubs(): void {
  for (const each of servers.values()) {
    each.close();
    each.closeAllConnections();
  }
}

export const pickGitHub = (customer: string): string =>
  `http://${readHost(servers.get(customer === 'acme' ? 'ghe.acme.com' : 'api.github.com')!)}`;

export const nameHost = (host: string): string => [...servers].find(([, each]) => readHost(each) === host)?.[0] ?? host;
