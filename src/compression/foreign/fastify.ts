import { randomBytes } from 'node:crypto';
import type { AbstractHttpAdapter } from '@nestjs/core';
import { rawRoute } from '../../http/http-installation.js';
import { PROBE_BODY } from './probe-body.js';

interface Injectable {
  inject(request: { method: string; url: string; headers: Record<string, string> }): Promise<{
    headers: Record<string, unknown>;
    rawPayload: Buffer;
  }>;
}

/**
 * A route of a random name through which an application's own `@fastify/compress` is tried: its options cannot be read, and
 * it acts on routes only. The request is injected, so none crosses the network, and the route answers nobody else: while
 * it is closed, before and after its one request, it is a 404.
 */
export class FastifyProbe {
  private readonly url = `/${randomBytes(16).toString('hex')}`;
  private open = false;

  /** Before routes are registered. */
  register(adapter: AbstractHttpAdapter): void {
    rawRoute(adapter, this.url, () =>
      Promise.resolve(
        this.open
          ? { status: 200, type: 'application/json', body: PROBE_BODY }
          : { status: 404, type: 'application/json', body: '' },
      ),
    );
  }

  /** Whether a request is the probe's: the library leaves it to the other compressor. */
  covers(url: string | undefined): boolean {
    return this.open && url === this.url;
  }

  async run(fastify: Injectable): Promise<{ coding: string | undefined; body: Buffer }> {
    this.open = true;
    try {
      const { headers, rawPayload } = await fastify.inject({
        method: 'GET',
        url: this.url,
        headers: { 'accept-encoding': 'br' },
      });
      return { coding: headers['content-encoding'] as string | undefined, body: rawPayload };
    } finally {
      this.open = false;
    }
  }
}
