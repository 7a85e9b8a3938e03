import { printable } from '../quantity.js';

/** Of a library's snapshot what is read here. Every part may be missing: another version, a feature that is off. */
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

/** What the server knows of itself: its snapshot endpoint, where there is one. */
export class ServerView {
  /** Why nothing is known; null when something is. */
  obstacle: string | null = null;

  constructor(
    private readonly url: URL,
    private readonly headers: Readonly<Record<string, string>>,
  ) {}

  /** Never rejects; null when it cannot be read now. */
  async read(): Promise<Snapshot | null> {
    const { pathname } = this.url;
    try {
      const response = await fetch(this.url, {
        headers: { ...this.headers, accept: 'application/json' },
        // Elsewhere its headers have nothing to do.
        redirect: 'error',
        signal: AbortSignal.timeout(PATIENCE_MS),
      });
      if (response.ok) {
        const given = (await response.json()) as Snapshot | null;
        if (typeof given?.at === 'number') {
          this.obstacle = null;
          return given;
        }
        this.obstacle = `GET ${pathname} is no snapshot of nestjs-perf`;
        return null;
      }
      await response.body?.cancel();
      const advice =
        response.status === 403 || response.status === 401
          ? "--snapshot-header 'authorization: …'"
          : '`snapshotEndpoint` of PerfModule';
      this.obstacle = `GET ${pathname} answers ${response.status}: see ${advice}`;
    } catch (error) {
      this.obstacle = `GET ${pathname} does not answer: ${printable((error as Error).message)}`;
    }
    return null;
  }
}
