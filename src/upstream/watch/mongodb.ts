import type { EventEmitter } from 'node:events';
import { PerfError } from '../../core/perf.error.js';
import { listenShared } from '../../core/shared-listener.js';
import type { Call } from '../request-time.js';
import { hasMethods, type Watch } from './watch.js';

/** https://www.mongodb.com/docs/drivers/node/current/monitoring-and-logging/monitoring/ */
interface CommandEvent {
  readonly requestId: number;
  readonly address: string;
  readonly commandName: string;
  readonly databaseName: string;
  readonly command?: Readonly<Record<string, unknown>>;
}

/** @throws PERF_ERR_WATCH when the client emits no commands */
export const watchMongo: Watch = (client, upstream, findTarget) => {
  if (!hasMethods(client, 'db', 'startSession', 'on', 'off')) return null;
  const { options } = client as { options?: { monitorCommands?: boolean } };
  if (options?.monitorCommands !== true)
    throw new PerfError(
      'PERF_ERR_WATCH',
      'perf.watch() was given a MongoClient that emits no commands. Make it with `new MongoClient(url, { monitorCommands: true })`.',
    );
  const emitter = client as unknown as EventEmitter;
  const open = new Map<number, Call | null>();
  const onStarted = ({ requestId, address, commandName, databaseName, command }: CommandEvent): void => {
    const target = findTarget('other', 'mongodb', `${address}/${databaseName}`, commandName);
    // `find: 'orders'`
    open.set(requestId, upstream.begin(target, `${commandName} ${String(command?.[commandName])}`));
  };
  const end = ({ requestId }: CommandEvent, failed: boolean): void => {
    open.get(requestId)?.end(failed);
    open.delete(requestId);
  };
  const stops = [
    listenShared(emitter, 'commandStarted', onStarted),
    listenShared(emitter, 'commandSucceeded', (event: CommandEvent) => end(event, false)),
    listenShared(emitter, 'commandFailed', (event: CommandEvent) => end(event, true)),
  ];
  return () => stops.forEach((stop) => stop());
};
