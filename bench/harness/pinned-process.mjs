// Child processes that have a core of their own and answer questions over IPC.
import { spawn, spawnSync } from 'node:child_process';
import { availableParallelism } from 'node:os';

/** The server has core 0, the load generator core 1: neither takes time from the other. */
export const SERVER_CORE = 0;
export const LOAD_CORE = 1;

/** Whether processes can be pinned here: `taskset` exists (Linux) and two cores are ours. */
export const canPin =
  availableParallelism() >= 2 &&
  [SERVER_CORE, LOAD_CORE].every((core) => spawnSync('taskset', ['-c', String(core), 'true']).status === 0);

/** A Node process on one core that answers `{ type, … }` messages with `{ id, result | error }`. */
export class PinnedProcess {
  #pending = new Map();
  #sequence = 0;
  #failure = null;

  constructor(core, node, args) {
    const [command, ...rest] = [...(canPin ? ['taskset', '-c', String(core)] : []), node, ...args];
    this.child = spawn(command, rest, {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      env: { ...process.env, NODE_ENV: 'production' },
    });
    /** The one message of a process that is ready. */
    this.ready = this.#waitFor('ready');
    this.child.on('message', ({ id, result, error }) => {
      const waiting = this.#pending.get(id);
      this.#pending.delete(id);
      if (error === undefined) waiting?.resolve(result);
      else waiting?.reject(new Error(error));
    });
    this.exited = new Promise((resolve) => {
      const gone = (why) => {
        this.#failure ??= new Error(`${args.at(-1)} ended: ${why}.`);
        for (const { reject } of this.#pending.values()) reject(this.#failure);
        this.#pending.clear();
        resolve();
      };
      this.child.once('error', (error) => gone(error.message));
      this.child.once('exit', (code, signal) => gone(signal ?? `exit code ${code}`));
    });
  }

  ask(message) {
    const id = ++this.#sequence;
    const answer = this.#waitFor(id);
    if (this.#failure === null) this.child.send({ ...message, id }, () => {});
    return answer;
  }

  async stop() {
    this.child.kill('SIGKILL');
    await this.exited;
  }

  #waitFor(id) {
    if (this.#failure !== null) return Promise.reject(this.#failure);
    return new Promise((resolve, reject) => this.#pending.set(id, { resolve, reject }));
  }
}

/** In the child: answers questions with `handlers[type](message)` and says that it is ready. Ends with its parent. */
export function answerParent(handlers, ready) {
  const answer = async ({ id, type, ...message }) => {
    try {
      process.send({ id, result: await handlers[type](message) });
    } catch (error) {
      process.send({ id, error: error instanceof Error ? error.message : String(error) });
    }
  };
  process.on('message', (message) => void answer(message));
  process.on('disconnect', () => process.exit());
  process.send({ id: 'ready', result: ready });
}
