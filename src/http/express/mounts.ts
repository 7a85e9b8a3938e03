import type { AbstractHttpAdapter } from '@nestjs/core';

/** What a client's text can match in another way than by being it. */
const PATTERN = /[:*{}()[\]?+!\\]/;

/** The paths that `app.use()` was given. Express tells only what the client sent, which must not become a label. */
export class MountPaths {
  /** By lower-case path: Express compares so. */
  private readonly written = new Map<string, string>();
  private watched: AbstractHttpAdapter | null = null;

  /** From now on; what was mounted before is not known. */
  watch(adapter: AbstractHttpAdapter): void {
    if (this.watched === adapter) return;
    this.watched = adapter;
    const use = adapter.use.bind(adapter) as (...parameters: unknown[]) => unknown;
    adapter.use = (...parameters: unknown[]): unknown => {
      for (const path of [parameters[0]].flat()) if (typeof path === 'string') this.add(path);
      return use(...parameters);
    };
  }

  /** The path as it was written; null for one with parameters, and for one that is not known. */
  find(baseUrl: string): string | null {
    return this.written.get(baseUrl.toLowerCase()) ?? null;
  }

  private add(path: string): void {
    const trimmed = path.endsWith('/') ? path.slice(0, -1) : path;
    if (trimmed.startsWith('/') && !PATTERN.test(trimmed)) this.written.set(trimmed.toLowerCase(), trimmed);
  }
}
