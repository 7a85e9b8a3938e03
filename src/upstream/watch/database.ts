/** What clients say of their server, in their options. */
export interface Database {
  readonly host?: string | undefined;
  readonly port?: string | number | undefined;
  readonly database?: string | undefined;
  /** A connection string. */
  readonly url?: string | undefined;
}

/** `'db:5432/shop'`; of a connection string neither the user nor the password nor an option. */
export function databaseOf({ host, port, database, url }: Database): string {
  if (typeof url === 'string' && URL.canParse(url)) {
    const { hostname, port: urlPort, pathname } = new URL(url);
    return named(hostname, urlPort || port, decodeURIComponent(pathname.slice(1)) || database);
  }
  return named(host, port, database);
}

function named(host: string | undefined, port: string | number | undefined, database: unknown): string {
  // A folder of sockets is this machine.
  const server = host === undefined || host === '' || host.startsWith('/') ? 'localhost' : host;
  const withPort = port === undefined || port === '' ? server : `${server}:${port}`;
  // A database that is a file is named by a path.
  return typeof database === 'string' && /^[\w.-]+$/.test(database) ? `${withPort}/${database}` : withPort;
}
