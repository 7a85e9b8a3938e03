import { PerfError } from '../../core/perf.error.js';
import { OpenCalls, type WatchableClient } from './watched-client.js';

interface MongoCommand {
  readonly requestId: number;
  readonly connectionId?: string | number | bigint;
  readonly address: string;
  readonly commandName: string;
  readonly databaseName?: string;
}
interface MongoClient {
  on(event: string, hear: (command: MongoCommand) => void): unknown;
  off(event: string, hear: (command: MongoCommand) => void): unknown;
  readonly options: { readonly monitorCommands?: boolean };
}

/** A connection's own: whoever needs the first one did not ask for them. */
const OF_CONNECTIONS = /^(hello|ismaster|saslStart|saslContinue|authenticate|endSessions)$/i;

/** https://www.mongodb.com/docs/drivers/node/current/monitoring-and-logging/monitoring/ */
export const mongodb: WatchableClient = {
  name: 'MongoClient',
  recognizes: (client) => 'startSession' in client && 'db' in client && 'options' in client,
  watch(client: MongoClient, watching) {
    if (client.options.monitorCommands !== true)
      throw new PerfError(
        'PERF_ERR_WATCH',
        'perf.watch() got a MongoClient that does not tell of its commands. Make it with `new MongoClient(url, { monitorCommands: true })`.',
      );
    const calls = new OpenCalls<string>(watching);
    const keyOf = ({ address, connectionId, requestId }: MongoCommand): string =>
      `${address} ${connectionId} ${requestId}`;
    const started = (command: MongoCommand): void => {
      const { address, databaseName, commandName } = command;
      if (OF_CONNECTIONS.test(commandName)) return;
      const host = databaseName === undefined ? address : `${address}/${databaseName}`;
      calls.begin(keyOf(command), { kind: 'other', client: 'mongodb', host, method: commandName, path: '' });
    };
    const succeeded = (command: MongoCommand): void => calls.end(keyOf(command), false);
    const failed = (command: MongoCommand): void => calls.end(keyOf(command), true);
    client.on('commandStarted', started);
    client.on('commandSucceeded', succeeded);
    client.on('commandFailed', failed);
    return () => {
      client.off('commandStarted', started);
      client.off('commandSucceeded', succeeded);
      client.off('commandFailed', failed);
    };
  },
};
