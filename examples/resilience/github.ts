import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

/** A foreign service. While it stalls it accepts every request and answers none; later it answers what still waits. */
export class GitHub {
  asked = 0;
  url = '';
  private stalled = false;
  private readonly waiting = new Set<ServerResponse>();
  private readonly server = createServer((_request, response) => void this.serve(response));

  async start(): Promise<void> {
    await new Promise<void>((resolve) => this.server.listen(0, '127.0.0.1', resolve));
    this.url = `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  stall(): void {
    this.stalled = true;
  }

  recover(): void {
    this.stalled = false;
    for (const response of this.waiting) answer(response);
    this.waiting.clear();
  }

  stop(): void {
    this.server.close();
    this.server.closeAllConnections();
  }

  private async serve(response: ServerResponse): Promise<void> {
    this.asked += 1;
    await delay(5);
    if (!this.stalled) return answer(response);
    this.waiting.add(response);
    response.once('close', () => this.waiting.delete(response));
  }
}

const answer = (response: ServerResponse): void => void response.end('{"stargazers_count":42}');
