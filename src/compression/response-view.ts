import type { IncomingMessage, ServerResponse } from 'node:http';
import { stateOf } from '../request/tracker.js';
import type { RouteCompression } from './route-compression.js';
import type { FieldValue, ResponseHead } from './rules/policy.js';
import type { KeptResponse, SharedFlight } from './shared-response/shared-flight.js';

/** One response whose head is not sent yet, the same for both adapters. What is changed through it can be undone. */
export abstract class ResponseView implements ResponseHead {
  /** What compression keeps for its route. */
  abstract readonly route: RouteCompression;
  abstract readonly status: number;
  /** Before the first change; most responses have none. */
  private before: Map<string, FieldValue> | null = null;
  private statusBefore: number | null = null;

  constructor(
    private readonly request: IncomingMessage,
    private readonly raw: ServerResponse,
  ) {}

  abstract header(name: string): FieldValue;
  /** All response headers, by lower-case name. */
  abstract headers(): Readonly<Record<string, FieldValue>>;
  protected abstract write(name: string, value: Exclude<FieldValue, undefined>): void;
  protected abstract erase(name: string): void;
  protected abstract writeStatus(status: number): void;

  get method(): string {
    return this.request.method ?? 'GET';
  }

  /** The client has gone: work for it alone is wasted. */
  get gone(): boolean {
    return this.raw.destroyed;
  }

  /** `@NoCompression()` decorates its handler, or its route is off. */
  get off(): boolean {
    return this.route.off || stateOf(this.request)?.uncompressed === true;
  }

  /** Others wait for this response (a flight), or it was kept for others before; null for a response of its own. */
  get shared(): SharedFlight | KeptResponse | null {
    const state = stateOf(this.request);
    return (state?.sharedAnswer ?? null) as SharedFlight | KeptResponse | null;
  }

  /** Whether a response without a tag may get one. */
  get tags(): boolean {
    return true;
  }

  get hasOwnLength(): boolean {
    return this.header('content-length') !== undefined;
  }

  requestHeader(name: 'accept-encoding' | 'if-none-match' | 'if-modified-since' | 'cache-control'): string | undefined {
    return this.request.headers[name];
  }

  set(name: string, value: Exclude<FieldValue, undefined>): void {
    this.remember(name);
    this.write(name, value);
  }

  remove(name: string): void {
    this.remember(name);
    this.erase(name);
  }

  setStatus(status: number): void {
    this.statusBefore ??= this.status;
    this.writeStatus(status);
  }

  /** The head could not be sent, or its body failed: what answers now finds it as the application had left it. */
  undo(): void {
    for (const [name, value] of this.before ?? []) {
      if (value === undefined) this.erase(name);
      else this.write(name, value);
    }
    this.before = null;
    if (this.statusBefore !== null) this.writeStatus(this.statusBefore);
    this.statusBefore = null;
  }

  /** Since it was made, or undone. */
  hasChanged(name: string): boolean {
    return this.before?.has(name) === true;
  }

  private remember(name: string): void {
    this.before ??= new Map();
    if (!this.before.has(name)) this.before.set(name, this.header(name));
  }
}
