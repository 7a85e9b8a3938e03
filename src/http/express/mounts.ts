import type { AbstractHttpAdapter } from '@nestjs/core';

type Register = Awaited<ReturnType<AbstractHttpAdapter['createMiddlewareFactory']>>;

/** What a client's text can match in another way than by being it. */
const PATTERN = /[:*{}()[\]?+!\\]/;

/**
 * The paths that `app.use()` and `forRoutes()` were given: Express tells only what the client sent, which must not become a label.
 * And what modules have registered as middleware, and what answers where nothing has matched.
 */
export class MountPaths {
  /** By lower-case path: Express compares so. */
  private readonly written = new Map<string, string>();
  private readonly middleware = new WeakSet<object>();
  private readonly notFound = new WeakSet<object>();
  private watched: AbstractHttpAdapter | null = null;

  /** `isOff`: nothing is measured, so no label is asked for, and the adapter stays as it is. */
  constructor(private readonly isOff = false) {}

  /** From now on; what was mounted before is not known. */
  watch(adapter: AbstractHttpAdapter): void {
    if (this.isOff || this.watched === adapter) return;
    this.watched = adapter;
    const use = adapter.use.bind(adapter) as (...parameters: unknown[]) => unknown;
    adapter.use = (...parameters: unknown[]): unknown => {
      for (const path of [parameters[0]].flat()) if (typeof path === 'string') this.add(path);
      return use(...parameters);
    };
    const setNotFound = adapter.setNotFoundHandler.bind(adapter) as (...parameters: unknown[]) => unknown;
    adapter.setNotFoundHandler = (...parameters: unknown[]): unknown => {
      this.notFound.add(parameters[0] as object);
      return setNotFound(...parameters);
    };
    const factory = adapter.createMiddlewareFactory.bind(adapter);
    adapter.createMiddlewareFactory = (method) => {
      const register = factory(method);
      return typeof register === 'function' ? this.noting(register) : register.then((made) => this.noting(made));
    };
  }

  /** Whether a module has registered it by `forRoutes()`: for a method Nest makes a route of Express of it. */
  isMiddleware(handler: unknown): boolean {
    return this.middleware.has(handler as object);
  }

  /** Whether it is Nest's answer to what nothing has matched: under a prefix Nest 12 makes a route of Express of it, too. */
  isNotFound(handler: unknown): boolean {
    return this.notFound.has(handler as object);
  }

  /** The path as it was written; null for one with parameters, and for one that is not known. */
  find(baseUrl: string): string | null {
    return this.written.get(baseUrl.toLowerCase()) ?? null;
  }

  private noting(register: Register): Register {
    return (path, middleware) => {
      this.middleware.add(middleware);
      this.add(path);
      return register(path, middleware);
    };
  }

  private add(path: string): void {
    const trimmed = path.endsWith('/') ? path.slice(0, -1) : path;
    if (trimmed.startsWith('/') && !PATTERN.test(trimmed)) this.written.set(trimmed.toLowerCase(), trimmed);
  }
}
