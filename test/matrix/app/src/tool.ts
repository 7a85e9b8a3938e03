import type { ServerOptions, Server } from './server.js';
import type { Adapter } from './server.js';

/** A package that teams have beside this library. */
export interface Tool {
  readonly name: string;
  /** What main.ts and the root module hold for it. Called anew for each application. */
  setUp(adapter: Adapter): Promise<{
    options: ServerOptions;
    /** That it still does its work. Runs after this library's own records were found right. */
    works: (server: Server) => Promise<void>;
    end?: () => Promise<void>;
  }>;
}
