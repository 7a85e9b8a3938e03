import type { Server } from 'node:http';
import { Server as TlsServer } from 'node:tls';

const EVERY_ADDRESS = new Set(['::', '0.0.0.0', '::1']);

/** Where a server can be reached from its own machine; `''` when it does not listen on a port. */
export function addressOf(server: Server | null): string {
  const bound = server?.address() ?? null;
  if (bound === null || typeof bound === 'string') return '';
  const { address, port } = bound;
  const host = EVERY_ADDRESS.has(address) ? 'localhost' : address.includes(':') ? `[${address}]` : address;
  return `${server instanceof TlsServer ? 'https' : 'http'}://${host}:${port}`;
}
