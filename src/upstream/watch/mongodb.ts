import type { EventEmitter } from 'node:events';
import { PerfError } from '../../core/perf.error.js';
import { listenShared } from '../../core/shared-listener.js';
import { hasMethods, type EndCall, type Hearer } from './watched-call.js';

/** https://www.mongodb.com/docs/drivers/node/current/monitoring-and-logging/monitoring/ */
interface CommandEvent {
  readonly requestId: number;
  readonly address: string;
  readonly commandName: string;
  readonly databaseName: string;
  readonly command?: Readonly<Record<string, unknown>>;
}

/** @throws PERF_ERR_WATCH when the client does not tell of its commands */
export function watchMongo(client: object, hearer: Hearer): (() => void) | null {
  if (!hasMethods(client, 'db', 'startSession', 'on', 'off')) return null;
  const { options } = client as { options?: { monitorCommands?: boolean } };
  if (options?.monitorCommands !== true)
    throw new PerfError(
      'PERF_ERR_WATCH',
      'perf.watch() was given a MongoClient that does not tell of its commands. Make it with `new MongoClient(url, { monitorCommands: true })`.',
    );
  const emitter = client as unknown as EventEmitter;
  const open = new Map<number, EndCall>();
  const onStarted = ({ requestId, address, commandName, databaseName, command }: CommandEvent): void => {
    const host = `${address}/${databaseName}`;
    // `find: 'orders'`
    const what = `${commandName} ${String(command?.[commandName])}`;
    const call = { kind: 'other', client: 'mongodb', host, method: commandName, what } as const;
    open.set(requestId, hearer.begin(call));
  };
  const end = ({ requestId }: CommandEvent, failed: boolean): void => {
    open.get(requestId)?.(failed);
    open.delete(requestId);
  };
  const onSucceeded = (event: CommandEvent): void => end(event, false);
  const onFailed = (event: CommandEvent): void => end(event, true);
  const stops = [
    listenShared(emitter, 'commandStarted', onStarted),
    listenShared(emitter, 'commandSucceeded', onSucceeded),
    listenShared(emitter, 'commandFailed', onFailed),
  ];
  return () => {
    for (const stop of stops) stop();
    for (const stillOpen of open.values()) stillOpen(false);
    open.clear();
  };
}
