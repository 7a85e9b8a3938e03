import { Client } from '../client.js';
import { printable } from '../quantity.js';
import { makeGet } from '../traffic.js';

/** The part of a library's snapshot that is read here. Every field may be missing: another version, a feature that is off. */
export interface Snapshot {
  readonly at: number;
  readonly eventLoop?: { readonly utilization: number } | null;
  readonly routes?: readonly {
    readonly method: string;
    readonly route: string;
    readonly time?: { readonly ownCpuMs: { readonly mean: number } | null; readonly loopShare: number } | null;
  }[];
  readonly upstream?: readonly {
    readonly target: string;
    readonly calls: number;
    readonly inFlight: number;
    readonly durationMs: { readonly mean: number };
  }[];
  readonly resources?: {
    readonly at: number;
    readonly limits: { readonly cpuCores: number | null };
    readonly cpu: {
      readonly usageSeconds: number | null;
      readonly periods: number | null;
      readonly throttledPeriods: number | null;
    };
    readonly process: { readonly rssBytes: number };
  } | null;
}

const PATIENCE_MS = 5_000;
const ACCEPT = { accept: 'application/json' };

/** The server's own figures, from its snapshot endpoint where there is one. */
export class ServerView {
  /** Why nothing is known; null when something is. */
  obstacle: string | null = null;
  private readonly path: string;
  private readonly client: Client;

  constructor({ origin, pathname, search }: URL, headers: Readonly<Record<string, string>>) {
    this.path = pathname + search;
    this.client = new Client(new URL(origin), PATIENCE_MS, headers);
  }

  /** Never rejects; null when it cannot be read now. */
  async read(): Promise<Snapshot | null> {
    const { status, failure, body } = await this.client.send({ ...makeGet(this.path), headers: ACCEPT }, true);
    const snapshot = status === 200 ? snapshotIn(String(body)) : null;
    this.obstacle = snapshot === null ? this.describeObstacle(status, failure) : null;
    return snapshot;
  }

  close(): Promise<void> {
    return this.client.close();
  }

  private describeObstacle(status: number, failure: string | null): string {
    const asked = `GET ${this.path.split('?', 1)[0]}`;
    if (failure !== null) return `${asked} does not answer: ${printable(failure)}`;
    if (status === 200) return `${asked} is no snapshot of nestjs-perf`;
    const isRefused = status === 401 || status === 403;
    const advice = isRefused ? "--snapshot-header 'authorization: …'" : '`snapshotEndpoint` of PerfModule';
    return `${asked} answers ${status}: see ${advice}`;
  }
}

function snapshotIn(text: string): Snapshot | null {
  try {
    const given = JSON.parse(text) as Snapshot | null;
    return typeof given?.at === 'number' ? given : null;
  } catch {
    return null;
  }
}
